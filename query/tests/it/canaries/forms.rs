//! Secrets as people write them down, and the places of a document where they stand: written from what
//! runbooks look like, not from the rules that find them. Every value is made at run time.

/// A seeded generator (SplitMix64).
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// `n` characters of an alphabet.
    fn of(&mut self, alphabet: &str, n: usize) -> String {
        let chars: Vec<char> = alphabet.chars().collect();
        let at = |r: u64| chars[usize::try_from(r % chars.len() as u64).unwrap()];
        (0..n).map(|_| at(self.next())).collect()
    }

    /// Letters of both cases and digits, at least one of each.
    fn alnum(&mut self, n: usize) -> String {
        const ALL: &str = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
        loop {
            let value = self.of(ALL, n);
            let has = |test: fn(&u8) -> bool| value.as_bytes().iter().any(test);
            if has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
            {
                return value;
            }
        }
    }

    fn hex(&mut self, n: usize) -> String {
        self.of("0123456789abcdef", n)
    }

    /// A password with a core that is searched for.
    fn password(&mut self) -> String {
        let sign = self.of("!#%+=-_", 1);
        format!("{}{sign}{}", self.alnum(10), self.of("23456789", 2))
    }

    fn base64_line(&mut self, n: usize) -> String {
        self.of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/", n)
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for part in bytes.chunks(3) {
        let b = [part[0], *part.get(1).unwrap_or(&0), *part.get(2).unwrap_or(&0)];
        let n = (u32::from(b[0]) << 16) | (u32::from(b[1]) << 8) | u32::from(b[2]);
        for i in 0..4usize {
            let c = ALL[(n >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= part.len() { char::from(c) } else { '=' });
        }
    }
    out
}

/// A form with its values filled in.
pub(crate) struct Written {
    pub(crate) text: String,
    /// What must be found nowhere.
    pub(crate) needles: Vec<String>,
}

/// Forms of one line with `@P` for a password.
const WITH_PASSWORD: [&str; 76] = [
    "password: @P",
    "Password: `@P`",
    "passwd=@P",
    "DB_PASSWORD=@P",
    "export PGPASSWORD='@P'",
    "set \"ADMIN_PWD=@P\"",
    "  \"password\": \"@P\",",
    "db.password = \"@P\"",
    "spring.datasource.password=@P",
    "The password is @P.",
    "the root password of the switch is `@P` since May",
    "Its passphrase was changed to @P last week",
    "password for the admin user is now **@P**",
    "Passwort: @P",
    "pass: @P",
    "user: svc_backup, pass: @P",
    "login: admin / @P",
    "Credentials: monitor:@P",
    "credentials are `deploy` / `@P`",
    "postgres://app:@P@db1:5432/orders",
    "mysql://root:@P@127.0.0.1/wiki?ssl=1",
    "redis://:@P@cache.internal:6379/0",
    "amqp://worker:@P@mq-3.internal:5672/%2f",
    "mongodb+srv://svc:@P@cluster0.internal/admin",
    "https://ci:@P@git.internal/team/repo.git",
    "ftp://mirror:@P@files.internal/pub",
    "jdbc:postgresql://db2/app?user=app&password=@P",
    "Server=db3;Database=crm;User Id=sa;Password=@P;Encrypt=true",
    "curl -u admin:@P https://grafana.internal/api/health",
    "curl --user 'admin:@P' -X POST https://es.internal/_reindex",
    "curl -s https://es.internal -u elastic:@P",
    "wget --http-user=ci --http-password=@P https://nexus.internal/x.jar",
    "mysql -u root -p@P -e 'show processlist'",
    "mysqldump --user=backup --password=@P wiki > wiki.sql",
    "PGPASSWORD=@P psql -h db1 -U app -c 'select 1'",
    "psql \"host=db1 user=app password=@P dbname=orders\"",
    "sshpass -p '@P' ssh ops@bastion",
    "redis-cli -h cache1 -a @P info",
    "mongosh --host m1 -u admin -p @P --authenticationDatabase admin",
    "ldapsearch -x -D cn=admin,dc=corp -w @P -b dc=corp",
    "docker login -u ci -p @P registry.internal",
    "helm registry login registry.internal -u ci -p @P",
    "echo '@P' | docker login --username ci --password-stdin registry.internal",
    "echo 'deploy:@P' | sudo chpasswd",
    "htpasswd -b /etc/nginx/.htpasswd ops @P",
    "rabbitmqctl add_user shovel @P",
    "smbclient //nas/backup -U 'corp\\svc%@P'",
    "openssl enc -d -aes-256-cbc -in dump.enc -pass pass:@P",
    "ipmitool -H bmc7 -U ADMIN -P @P chassis power cycle",
    "sqlcmd -S db3 -U sa -P '@P' -Q 'select 1'",
    "CREATE USER 'repl'@'%' IDENTIFIED BY '@P';",
    "ALTER ROLE app WITH PASSWORD '@P';",
    "requirepass @P",
    "bind-password = @P",
    "<password>@P</password>",
    "<add key=\"SmtpPassword\" value=\"@P\" />",
    "<property name=\"connection.password\">@P</property>",
    "$cred = ConvertTo-SecureString \"@P\" -AsPlainText -Force",
    "New-LocalUser -Name ops -Password \"@P\"",
    "kubectl create secret generic db --from-literal=password=@P",
    "vault kv put secret/db password=@P",
    "docker run -e POSTGRES_PASSWORD=@P -d postgres",
    "machine nexus.internal login ci password @P",
    "db1.internal:5432:orders:app:@P",
    "ansible_become_pass: \"@P\"",
    "ansible_ssh_pass=@P",
    "password = @P ; rotate in June",
    "smtp_auth_password = '@P'",
    "`sudo_password`: `@P`",
    "Wifi key (PSK): wpa_passphrase=@P",
    "client_secret: @P",
    "\"clientSecret\" : \"@P\"",
    "admin_password => '@P'",
    "webhook secret = @P",
    "encryption_key: '@P'",
    "new password -> @P",
];

/// A secret in a form of its own; none where the number is beyond them.
pub(crate) fn token(number: usize, rng: &mut Rng) -> Option<Written> {
    let upper32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let one = |before: &str, value: String, after: &str| Written {
        text: format!("{before}{value}{after}"),
        needles: vec![value],
    };
    Some(match number {
        0 => one("git clone with ", format!("gh{}_{}", "p", rng.alnum(36)), ""),
        1 => {
            one("the runner has ", format!("gl{}-{}", "pat", rng.alnum(20)), " in its environment")
        }
        2 => one(
            "bot: ",
            format!(
                "xo{}-{}-{}-{}",
                "xb",
                rng.of("123456789", 12),
                rng.of("123456789", 12),
                rng.alnum(24)
            ),
            "",
        ),
        3 => one("aws_access_key_id = ", format!("AK{}{}", "IA", rng.of(upper32, 16)), ""),
        4 => one("aws_secret_access_key = ", rng.base64_line(40), ""),
        5 => one("Authorization: Bearer ", rng.alnum(40), ""),
        6 => one("-H 'X-Api-Key: ", rng.alnum(32), "'"),
        7 => one("curl -H \"PRIVATE-TOKEN: ", rng.alnum(20), "\" https://git.internal/api"),
        8 => {
            let password = rng.password();
            let encoded = base64(format!("ops:{password}").as_bytes());
            Written { text: format!("Authorization: Basic {encoded}"), needles: vec![encoded] }
        }
        9 => one(
            "https://hooks.sl",
            format!(
                "ack.com/services/T{}/B{}/{}",
                rng.of(upper32, 8),
                rng.of(upper32, 8),
                rng.alnum(24)
            ),
            "",
        ),
        10 => one("stripe: ", format!("sk_{}_{}", "live", rng.alnum(24)), ""),
        11 => one("sendgrid ", format!("S{}.{}.{}", "G", rng.alnum(22), rng.alnum(43)), ""),
        12 => one("npm: ", format!("np{}_{}", "m", rng.alnum(36)), ""),
        13 => one("maps key ", format!("AI{}{}", "za", rng.alnum(35)), ""),
        14 => one("VAULT_TOKEN=", format!("hv{}.{}", "s", rng.alnum(28)), ""),
        15 => one(
            "token ",
            format!(
                "ey{}.ey{}.{}",
                format_args!("J{}", rng.alnum(30)),
                format_args!("J{}", rng.alnum(60)),
                rng.alnum(43)
            ),
            "",
        ),
        16 => one("https://app.internal/hook?token=", rng.alnum(32), "&x=1"),
        17 => one("https://store.blob.internal/c?sv=2024&sig=", rng.alnum(44), "&se=1"),
        18 => one(
            "AccountName=logs;AccountKey=",
            format!("{}==", rng.base64_line(86)),
            ";EndpointSuffix=core",
        ),
        19 => one("api_key: ", rng.hex(32), ""),
        20 => one("secret_key_base: ", rng.hex(64), ""),
        21 => one("PrivateKey = ", format!("{}=", rng.base64_line(43)), ""),
        22 => {
            one("root:", format!("$6${}${}", rng.alnum(12), rng.alnum(86)), ":19000:0:99999:7:::")
        }
        23 => one("ops:", format!("$2y$10${}", rng.alnum(53)), ""),
        24 => one("otpauth://totp/ops?secret=", rng.of(upper32, 32), "&issuer=vpn"),
        25 => one("digitalocean ", format!("dop{}_{}", "_v1", rng.hex(64)), ""),
        26 => one("telegram ", format!("{}:AA{}", rng.of("123456789", 10), rng.alnum(33)), ""),
        27 => one("pypi ", format!("py{}-AgEIcHlwaS5vcmc{}", "pi", rng.alnum(70)), ""),
        28 => one("grafana ", format!("gl{}_{}_{}", "sa", rng.alnum(32), rng.hex(8)), ""),
        29 => one("auth_token: \"", rng.alnum(32), "\""),
        30 => one(
            "kubeadm join 10.0.0.1:6443 --token ",
            format!("{}.{}", rng.of("abcdefghij0123456789", 6), rng.of("abcdefghij0123456789", 16)),
            "",
        ),
        31 => one("Cookie: session_id=", rng.alnum(40), "; theme=dark"),
        _ => return None,
    })
}

/// A secret over several lines; none where the number is beyond them.
pub(crate) fn block(number: usize, rng: &mut Rng) -> Option<Written> {
    let pem = |rng: &mut Rng, kind: &str, lines: usize| {
        let body: Vec<String> = (0..lines).map(|_| rng.base64_line(64)).collect();
        let text = format!(
            "-----BEGIN {kind}PRIVATE KEY-----\n{}\n-----END {kind}PRIVATE KEY-----",
            body.join("\n")
        );
        Written { text, needles: body }
    };
    Some(match number {
        0 => pem(rng, "RSA ", 25),
        1 => pem(rng, "", 3),
        2 => pem(rng, "OPENSSH ", 6),
        3 => pem(rng, "EC ", 3),
        4 => {
            let mut cut = pem(rng, "", 12);
            cut.text = cut.text.lines().take(9).collect::<Vec<_>>().join("\n");
            cut.needles.truncate(8);
            cut
        }
        5 => {
            let (a, b) = (rng.alnum(14), rng.alnum(18));
            let encoded = [base64(a.as_bytes()), base64(b.as_bytes())];
            Written {
                text: format!(
                    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  password: {}\n  api: {}",
                    encoded[0], encoded[1]
                ),
                needles: encoded.into(),
            }
        }
        6 => {
            let value = rng.password();
            let text = format!("kind: Secret\nstringData:\n  admin: \"{value}\"\ntype: Opaque");
            Written { text, needles: vec![value] }
        }
        7 => {
            let value = rng.password();
            let text = format!("- name: DB_PASSWORD\n  value: \"{value}\"");
            Written { text, needles: vec![value] }
        }
        8 => {
            let (id, secret) = (
                format!("AS{}{}", "IA", rng.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
                rng.base64_line(38) + "x7",
            );
            let text = format!("id      {id}\nregion  eu-west-1\nkey     {secret}");
            Written { text, needles: vec![id, secret] }
        }
        9 => {
            let value = rng.password();
            let text = format!("machine nexus.internal\n  login ci\n  password {value}");
            Written { text, needles: vec![value] }
        }
        10 => {
            let value = rng.password();
            let text = format!(
                "curl -X POST https://es.internal/_search \\\n  -u elastic:{value} \\\n  -d '{{}}'"
            );
            Written { text, needles: vec![value] }
        }
        11 => {
            let value = rng.password();
            let text = format!("password: |\n  {value}\nuser: app");
            Written { text, needles: vec![value] }
        }
        _ => return None,
    })
}

/// A form of one line with a password; none where the number is beyond them.
pub(crate) fn line(number: usize, rng: &mut Rng) -> Option<Written> {
    let value = rng.password();
    let text = WITH_PASSWORD.get(number)?.replace("@P", &value);
    Some(Written { text, needles: vec![value] })
}

/// Where a form of one line stands; `@` is the form.
pub(crate) const PLACES: [(&str, &str); 32] = [
    ("paragraph", "Some words before.\n\n@\n"),
    ("behind words", "When that is done, use this: @\n"),
    ("fence", "```sh\n@\n```\n"),
    ("tilde fence", "~~~\n$ @\n~~~\n"),
    ("indented code", "Run:\n\n    @\n"),
    ("list", "- first\n- @\n- last\n"),
    ("nested list", "1. one\n   - two\n     - @\n"),
    ("task list", "- [ ] @\n"),
    ("fence in a list", "1. Do it:\n\n   ```\n   @\n   ```\n\n2. Done.\n"),
    ("quote", "> Note that\n> @\n"),
    ("nested quote", "> > @\n"),
    ("fence in a quote", "> ```\n> @\n> ```\n"),
    ("html comment", "<!-- @ -->\n\nText.\n"),
    ("comment over lines", "<!--\nold:\n@\n-->\n\nText.\n"),
    ("html block", "<div>\n@\n</div>\n"),
    ("details", "<details><summary>more</summary>\n\n@\n\n</details>\n"),
    ("pre", "<pre>\n@\n</pre>\n"),
    ("heading", "## @\n\nText below.\n"),
    ("setext heading", "@\n===\n\nText below.\n"),
    ("bold", "Attention, **@** \n"),
    ("footnote", "See below[^1].\n\n[^1]: @\n"),
    ("definition", "term\n: @\n"),
    ("after an unclosed fence", "```\nnever closed\n@\n"),
    ("shell prompt", "```console\nroot@db1:~# @\n# done\n```\n"),
    ("commented line", "```yaml\n# @\nkey: true\n```\n"),
    ("diff", "```diff\n- old\n+ @\n```\n"),
    ("tabs", "\t- item\n\n\t\t@\n"),
    ("after an emoji", "\u{1f510} \u{2014} @\n"),
    ("front matter", "---\ntitle: Doc\nnotes: |\n  @\n---\n\n# Doc\n\nText.\n"),
    ("front matter line", "---\ntitle: Doc\n@\n---\n\n# Doc\n\nText.\n"),
    ("mdx", "import X from 'x'\n\n<Tip>\n  @\n</Tip>\n"),
    ("last line", "# Doc\n\nno line end after: @"),
];

/// Where a form of several lines stands.
pub(crate) const BLOCK_PLACES: [(&str, &str, &str); 8] = [
    ("fence", "```\n@\n```\n\nAfter.\n", ""),
    ("text", "Before.\n\n@\n\nAfter.\n", ""),
    ("indented code", "Before.\n\n@\n\nAfter.\n", "    "),
    ("list", "1. Store this:\n\n   ```\n@\n   ```\n2. Go on.\n", "   "),
    ("quote", "> ```\n@\n> ```\n\nAfter.\n", "> "),
    ("comment", "<!--\n@\n-->\n\nAfter.\n", ""),
    ("pre", "<pre>\n@\n</pre>\n\nAfter.\n", ""),
    ("after an unclosed fence", "~~~~\n@\n", ""),
];
