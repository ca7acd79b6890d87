//! The words that the request gate's grammar knows, by the part they play.

use rustc_hash::FxHashSet;
use std::sync::OnceLock;

/// What a shortened or run-together word stands for.
pub(super) fn resolve(word: &str) -> Option<&'static str> {
    Some(match word {
        "pls" | "plz" | "plse" | "pleas" | "plis" | "pleeease" => "please",
        "thx" | "ty" | "tnx" | "cheers" | "thank" => "thanks",
        "u" | "ya" | "yu" => "you",
        "ur" => "your",
        "cud" => "could",
        "wld" | "wud" => "would",
        "whats" | "what's" | "wats" | "wat's" | "whatis" => "what is",
        "who's" => "who is",
        "where's" | "wheres" => "where is",
        "how's" | "hows" => "how is",
        "which's" => "which is",
        "gimme" => "give me",
        "lemme" => "let me",
        "gonna" => "going to",
        "wanna" => "want to",
        "gotta" => "have to",
        "i'd" => "i would",
        "it'd" => "it would",
        "you'd" => "you would",
        "i'm" | "im" => "i am",
        "i've" | "ive" => "i have",
        "you're" => "you are",
        "let's" | "lets" => "let us",
        "dont" => "don't",
        "havent" => "haven't",
        "pw" | "pwd" | "passwd" | "pwds" | "pws" | "pass-word" | "psw" => "password",
        "creds" | "cred" => "credentials",
        "e-mail" | "mail" => "email",
        "e-mails" | "mails" => "emails",
        "nr" | "nbr" => "number",
        "acct" => "account",
        "info" => "information",
        "rn" => "now",
        "prod" => "production",
        _ => return None,
    })
}

/// Whether a word is in a named set.
pub(super) fn named(set: &str, word: &str) -> bool {
    match set {
        "deed" => is_deed(word),
        "doing" => is_doing(word),
        "done" => is_done(word),
        "id" => is_id(word),
        "address" => is_email(word),
        "name" => FIRST_NAMES.holds(word),
        "filler" => FILLERS.holds(word),
        "adverb" => ADVERBS.holds(word),
        "inform" => INFORM.holds(word),
        "hand" => HAND.holds(word),
        "det" => DETERMINERS.holds(word),
        "prep" => PREPOSITIONS.holds(word),
        "polite" => POLITE.holds(word),
        "persons" => PERSONS.holds(word),
        "person" => PERSON.holds(word) || PERSONS.holds(word),
        "record" => RECORDS.holds(word),
        "personal" => PERSONAL.holds(word),
        "private" => PRIVATE.holds(word),
        _ => false,
    }
}

/// A list of words, split once.
struct Words {
    text: &'static str,
    set: OnceLock<FxHashSet<&'static str>>,
}

impl Words {
    const fn new(text: &'static str) -> Self {
        Self { text, set: OnceLock::new() }
    }

    fn set(&self) -> &FxHashSet<&'static str> {
        self.set.get_or_init(|| self.text.split_whitespace().collect())
    }

    fn holds(&self, word: &str) -> bool {
        self.set().contains(word)
    }
}

/// What a person can have done to a system, or have somebody told.
static DEEDS: Words = Words::new(
    "restart reboot bounce kill stop start shut power cycle kick delete remove drop \
    purge flush clear wipe clean truncate deploy redeploy roll rollback revert undo release ship merge \
    promote demote fail failover switch scale resize grow extend increase decrease raise lower upgrade \
    downgrade update patch install uninstall apply run execute trigger launch fire rotate revoke renew \
    reissue reset unlock lock block ban unban unblock whitelist allow open close disable enable \
    re-enable reenable turn silence mute unmute ack acknowledge resolve page call notify ping message \
    restore recover rebuild recreate create add make set change bump move migrate drain cordon \
    uncordon evict mount unmount fix repair free vacuum reindex backup back pause resume cancel retry \
    rerun re-run replay requeue approve grant put take push sync reload format refund order schedule \
    freeze unfreeze hold log file raise handle deal bring spin tear nuke terminate destroy provision \
    invalidate reassign assign detach attach unsubscribe subscribe whack punt rename import seed \
    transfer post edit modify configure hotfix rejoin replace swap reboot reinstall ssh connect stand \
    clone dispatch escalate book adjust expand shrink archive compact refresh redirect reroute unstick \
    perform conduct initiate carry ring wake shove sort nudge chuck ditch proceed sudo",
);

/// Ways to hand over what is known, as opposed to a deed.
static INFORM: Words = Words::new(
    "tell explain show describe find list help remind point summarise summarize give \
    search look say answer suggest recommend walk elaborate clarify teach advise confirm compare define \
    cite quote link read see recall think let know be have get share send provide check verify paste \
    print dump export lookup reveal display translate decode repeat copy shed outline discuss detail talk guide illustrate specify \
    enumerate speak cover brief educate contact comment review assist advise enlighten inform direct refer",
);

/// Ways to ask for a thing to be handed over.
static HAND: Words = Words::new(
    "give send paste dump reveal show print share hand dm read drop spit tell return list \
    export display copy remind decode provide disclose cough post forward get fetch pull email text \
    supply leak expose present output write recite name divulge pass slip find look download cat echo \
    type enter",
);

static FILLERS: Words = Words::new(
    "please kindly just ok okay hey hi hello yo bot assistant so then and but now well \
    also sorry quick quickly dear team folks guys alright right oh hm hmm thanks actually again , siri \
    morning evening gday",
);
static ADVERBS: Words = Words::new(
    "please just kindly quickly also maybe possibly perhaps now go ahead and quick \
    immediately simply again really to try first then",
);
static POLITE: Words = Words::new("please thanks asap now immediately urgently already");
static DETERMINERS: Words = Words::new(
    "the a an our my your this that these those his her their its any some all every \
    each current new old",
);
static PREPOSITIONS: Words = Words::new(
    "of for to on in from with at by under behind into inside within per as we i \
    you does do did is are that which who and or so because when before after again over here there \
    please thanks asap now , until about without via",
);

static PERSON: Words = Words::new(
    "customer client user guest patient member tenant subscriber buyer visitor passenger \
    claimant citizen applicant employee supplier merchant student shopper borrower policyholder \
    cardholder cardholder lead prospect person consumer payer renter donor",
);
static PERSONS: Words = Words::new(
    "customers clients users guests patients members tenants subscribers buyers visitors \
    passengers claimants citizens applicants employees suppliers merchants students shoppers borrowers \
    policyholders cardholders leads prospects people consumers payers renters donors everyone everybody",
);
/// Records that belong to one person or company.
static RECORDS: Words = Words::new(
    "order invoice booking reservation refund parcel shipment payment subscription \
    purchase basket cart claim policy-number delivery account profile",
);
/// Attributes of a person.
static PERSONAL: Words = Words::new(
    "email emails phone phones mobile telephone address addresses card cards iban bank \
    ssn passport birthday birthdate birth dob order orders invoice invoices payment payments purchase \
    purchases transaction transactions booking bookings reservation reservations name names surname \
    details data information profile profiles messages message location contact contacts balance login \
    logins ip ips subscription subscriptions ticket tickets refund refunds files record records chat \
    chats conversation conversations history revenue salary account accounts plan usage activity number \
    numbers uploads documents session sessions license licence photo photos medical credit postcode",
);
/// Attributes that only a person has.
static PRIVATE: Words = Words::new(
    "phone mobile telephone email emails address addresses birthday birthdate birth dob \
    card cards iban ssn passport salary balance orders bookings purchases invoices surname names phones \
    home postal postcode conversation conversations chats chat medical",
);

static FIRST_NAMES: Words = Words::new(
    "anna anne maria marie john james peter paul mark marc michael thomas thom alice bob \
    robert jane jean lisa laura sarah sara emma sophie julia karl carl hans jürgen juergen klaus wolfgang \
    stefan steffen martin andreas alexander alex daniel david lucas lukas leon felix max oliver olivia \
    mia noah liam emily emilia charlotte george william henry jack harry charles edward frank fred \
    kevin brian steve steven stephen jason jeff jeffrey susan karen linda nancy betty helen sandra \
    donna carol ruth sharon michelle kim jessica jennifer amy angela melissa rebecca deborah rachel \
    pedro juan jose josé carlos luis miguel diego lucia lucía carmen elena isabel ana sofia giulia \
    marco luca giovanni francesca paolo pierre luc jacques camille chloe léa antoine ahmed mohamed \
    mohammed muhammad ali omar fatima aisha hassan yusuf ibrahim wei li ming chen yuki hiroshi akira \
    kenji sakura priya raj amit anil sunita deepak ravi olga ivan dmitri sergei natasha svetlana igor \
    anton viktor katarzyna piotr agnieszka tomasz jan lars erik ingrid sven nils björn astrid freya \
    tom tim ben sam joe dan matt nick chris christian christopher patrick sean ryan adam aaron eric \
    gary larry scott gregory joshua dennis jerry tyler zoe grace hannah abigail amelia ella chloé",
);

/// A verb of [`DEEDS`], or one that is a typing error away from a long one.
pub(crate) fn is_deed(word: &str) -> bool {
    DEEDS.holds(word)
        || (word.len() >= 5
            && word.bytes().all(|b| b.is_ascii_lowercase())
            && !NOT_TYPED_WRONG.holds(word)
            && DEEDS.set().iter().any(|d| d.len() >= 6 && is_near(word, d)))
}

/// Words that are one letter away from a deed and mean something else.
static NOT_TYPED_WRONG: Words = Words::new(
    "reports report request requests resume reboots restarts deletes replicas \
    replica removes schedules release-notes instal rotates renews database reload released enables \
    deleted remote removed restarted restored resolved rotated expands approved enabled disabled \
    patched renewed rotated replaced installs resets upgrades updates extends reverts revokes revoked \
    merged scaled drained silences paused canceled migrates migrated executed executes executor",
);

/// One letter more, less, other, or two swapped.
fn is_near(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > 1 || a == b {
        return a == b;
    }
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let tail = |skip_a: usize, skip_b: usize| {
        a.get(head + skip_a..).is_some_and(|x| b.get(head + skip_b..) == Some(x))
    };
    let swapped = a.len() == b.len()
        && head + 1 < a.len()
        && a[head] == b[head + 1]
        && a[head + 1] == b[head]
        && tail(2, 2);
    head > 0 && (tail(1, 0) || tail(0, 1) || tail(1, 1) || swapped)
}

/// `restarting`, `flushing`, `stopping`, `rotating`.
fn is_doing(word: &str) -> bool {
    word.strip_suffix("ing").is_some_and(is_root)
}

static IRREGULAR: Words = Words::new(
    "gone reset set put shut run rebuilt sent taken made brought built undone redone frozen given done \
    torn spun cut back-up up",
);

/// `restarted`, `stopped`, `rotated`, and those that are irregular.
fn is_done(word: &str) -> bool {
    IRREGULAR.holds(word)
        || word.strip_suffix("ed").is_some_and(is_root)
        || word.strip_suffix('d').is_some_and(|w| w.ends_with('e') && DEEDS.holds(w))
}

fn is_root(root: &str) -> bool {
    let doubled =
        root.len() > 3 && root.as_bytes()[root.len() - 1] == root.as_bytes()[root.len() - 2];
    DEEDS.holds(root)
        || DEEDS.holds(&format!("{root}e"))
        || root.strip_suffix('i').is_some_and(|r| DEEDS.holds(&format!("{r}y")))
        || (doubled && DEEDS.holds(&root[..root.len() - 1]))
}

/// The number or name of one of many: `4411`, `#55123`, `2024-0031`, `bob77`.
fn is_id(word: &str) -> bool {
    let bare = word.trim_start_matches('#');
    let digits = bare.bytes().filter(u8::is_ascii_digit).count();
    digits >= 2
        && bare.len() <= 40
        && bare.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '+' | '/'))
}

fn is_email(word: &str) -> bool {
    word.split_once('@').is_some_and(|(user, host)| {
        !user.is_empty() && host.contains('.') && !host.ends_with('.') && !host.starts_with('.')
    })
}
