//! Which lines of two texts differ: Myers' algorithm in linear space, prepared and tidied as GNU diff does it,
//! so that the hunks are the ones that people know.
//!
//! ```text
//! classes of lines -> without equal ends, and lines that would only confuse -> middle snakes -> hunks moved to where they read best
//! ```

use super::frequent::{Use, uses};
use super::settle::{script, settle};
use std::ops::Range;

/// Steps from either end after which the best split so far is taken.
const STEPS_MAX: usize = 4096;
/// Steps between two looks at the clock.
const LOOK: usize = 64;

/// Lines of the old text that lines of the new one stand in place of; one of the two may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Lines of the old text, from 0.
    pub old: Range<usize>,
    /// Lines of the new text, from 0.
    pub new: Range<usize>,
}

/// The changes from one text to another, in order. Lines are given as classes: equal numbers are equal lines.
///
/// `same` counts the lines at the start and at the end that are the same bytes; `context` of them are looked at,
/// too. `minimal` gives the fewest changed lines at any cost. None when `stop` said so on the way: texts without
/// order can take long.
#[must_use]
pub fn changes(
    old: &[u32],
    new: &[u32],
    same: (usize, usize),
    (context, minimal): (usize, bool),
    stop: &dyn Fn() -> bool,
) -> Option<Vec<Change>> {
    let start = same.0.saturating_sub(context);
    let end = same.1.saturating_sub(context);
    let (old, new) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    let mut sides = [Side::new(old, new, minimal), Side::new(new, old, minimal)];
    compare(&mut sides, minimal, stop)?;
    let [mut left, mut right] = sides.map(|s| s.changed);
    settle(old, &mut left, &right);
    settle(new, &mut right, &left);
    Some(script(&left, &right, start))
}

/// How many lines at the start and at the end of two texts are equal; no line is in both.
pub fn same_ends<T: PartialEq>(old: &[T], new: &[T]) -> (usize, usize) {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[start..], &new[start..]);
    (start, a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count())
}

/// One text, for the comparison.
struct Side {
    /// Classes of the lines that are compared.
    kept: Vec<u32>,
    /// Where they stand in the text.
    at: Vec<usize>,
    changed: Vec<bool>,
}

impl Side {
    fn new(own: &[u32], other: &[u32], minimal: bool) -> Self {
        let uses = if minimal { vec![Use::Keep; own.len()] } else { uses(own, other) };
        let mut side = Self { kept: Vec::new(), at: Vec::new(), changed: vec![false; own.len()] };
        for (n, (class, used)) in own.iter().zip(uses).enumerate() {
            if used == Use::Keep {
                side.kept.push(*class);
                side.at.push(n);
            } else {
                side.changed[n] = true;
            }
        }
        side
    }
}

/// Marks the lines that are not part of a longest common subsequence.
fn compare(sides: &mut [Side; 2], minimal: bool, stop: &dyn Fn() -> bool) -> Option<()> {
    let [left, right] = sides;
    let diagonals = left.kept.len() + right.kept.len() + 3;
    let root = {
        let (mut root, mut rest) = (1_usize, diagonals);
        while rest > 0 {
            root *= 2;
            rest /= 4;
        }
        root
    };
    let mut snakes = Snakes {
        x: &left.kept,
        y: &right.kept,
        zero: right.kept.len() + 1,
        forward: vec![-1; diagonals],
        backward: vec![-1; diagonals],
        steps_max: root.max(STEPS_MAX),
        stop,
    };
    let mut open = vec![(0..left.kept.len(), 0..right.kept.len(), minimal)];
    while let Some((mut x, mut y, minimal)) = open.pop() {
        while !x.is_empty() && !y.is_empty() && snakes.x[x.start] == snakes.y[y.start] {
            (x.start, y.start) = (x.start + 1, y.start + 1);
        }
        while !x.is_empty() && !y.is_empty() && snakes.x[x.end - 1] == snakes.y[y.end - 1] {
            (x.end, y.end) = (x.end - 1, y.end - 1);
        }
        if x.is_empty() || y.is_empty() {
            x.for_each(|n| left.changed[left.at[n]] = true);
            y.for_each(|n| right.changed[right.at[n]] = true);
            continue;
        }
        let split = snakes.split(&x, &y, minimal)?;
        open.push((x.start..split.x, y.start..split.y, split.minimal[0]));
        open.push((split.x..x.end, split.y..y.end, split.minimal[1]));
    }
    Some(())
}

/// The search for the middle of a shortest edit script.
struct Snakes<'a> {
    x: &'a [u32],
    y: &'a [u32],
    /// The place of diagonal 0 in the arrays.
    zero: usize,
    forward: Vec<isize>,
    backward: Vec<isize>,
    steps_max: usize,
    stop: &'a dyn Fn() -> bool,
}

/// Where to split, and whether each half must be minimal.
struct Split {
    x: usize,
    y: usize,
    minimal: [bool; 2],
}

/// Signed, as diagonals are.
#[expect(clippy::cast_possible_wrap, reason = "a number of lines in memory")]
fn signed(n: usize) -> isize {
    n as isize
}

#[expect(clippy::cast_sign_loss, reason = "called with places within the texts")]
fn place(n: isize) -> usize {
    debug_assert!(n >= 0, "a place within a text");
    n as usize
}

impl Snakes<'_> {
    fn slot(&self, diagonal: isize) -> usize {
        place(signed(self.zero) + diagonal)
    }

    fn split(&mut self, xs: &Range<usize>, ys: &Range<usize>, minimal: bool) -> Option<Split> {
        let (x0, x1, y0, y1) = (signed(xs.start), signed(xs.end), signed(ys.start), signed(ys.end));
        let (least, most) = (x0 - y1, x1 - y0);
        let (first, last) = (x0 - y0, x1 - y1);
        let odd = (first - last) & 1 != 0;
        let at = self.slot(first);
        self.forward[at] = x0;
        let at = self.slot(last);
        self.backward[at] = x1;
        let (mut low, mut high) = (first, first);
        let (mut below, mut above) = (last, last);
        // The searches from both ends meet at some step.
        for step in 1_usize.. {
            self.widen(&mut low, &mut high, (least, most), true);
            let mut d = high;
            while d >= low {
                let (down, right) =
                    (self.forward[self.slot(d - 1)], self.forward[self.slot(d + 1)]);
                let mut x = if down < right { right } else { down + 1 };
                let mut y = x - d;
                while x < x1 && y < y1 && self.x[place(x)] == self.y[place(y)] {
                    (x, y) = (x + 1, y + 1);
                }
                let at = self.slot(d);
                self.forward[at] = x;
                if odd && (below..=above).contains(&d) && self.backward[at] <= x {
                    return Some(Split { x: place(x), y: place(y), minimal: [true; 2] });
                }
                d -= 2;
            }
            self.widen(&mut below, &mut above, (least, most), false);
            let mut d = above;
            while d >= below {
                let (up, left) = (self.backward[self.slot(d - 1)], self.backward[self.slot(d + 1)]);
                let mut x = if up < left { up } else { left - 1 };
                let mut y = x - d;
                while x > x0 && y > y0 && self.x[place(x - 1)] == self.y[place(y - 1)] {
                    (x, y) = (x - 1, y - 1);
                }
                let at = self.slot(d);
                self.backward[at] = x;
                if !odd && (low..=high).contains(&d) && x <= self.forward[at] {
                    return Some(Split { x: place(x), y: place(y), minimal: [true; 2] });
                }
                d -= 2;
            }
            if !minimal && step >= self.steps_max {
                return Some(self.best((xs, ys), (low, high), (below, above)));
            }
            if step % LOOK == 0 && (self.stop)() {
                return None;
            }
        }
        None
    }

    /// One more diagonal on either side, or one less where the edge is reached.
    fn widen(
        &mut self,
        low: &mut isize,
        high: &mut isize,
        (least, most): (isize, isize),
        forward: bool,
    ) {
        let far = if forward { -1 } else { isize::MAX };
        if *low > least {
            *low -= 1;
            let at = self.slot(*low - 1);
            if forward { self.forward[at] = far } else { self.backward[at] = far }
        } else {
            *low += 1;
        }
        if *high < most {
            *high += 1;
            let at = self.slot(*high + 1);
            if forward { self.forward[at] = far } else { self.backward[at] = far }
        } else {
            *high -= 1;
        }
    }

    /// The search costs too much: the place that either end has come furthest to.
    fn best(
        &self,
        (xs, ys): (&Range<usize>, &Range<usize>),
        (low, high): (isize, isize),
        (below, above): (isize, isize),
    ) -> Split {
        let (x0, x1, y0, y1) = (signed(xs.start), signed(xs.end), signed(ys.start), signed(ys.end));
        let mut forward = (-1, x0);
        for d in (low..=high).rev().step_by(2) {
            let mut x = self.forward[self.slot(d)].min(x1);
            let mut y = x - d;
            if y > y1 {
                (x, y) = (y1 + d, y1);
            }
            if forward.0 < x + y {
                forward = (x + y, x);
            }
        }
        let mut backward = (isize::MAX, x1);
        for d in (below..=above).rev().step_by(2) {
            let mut x = self.backward[self.slot(d)].max(x0);
            let mut y = x - d;
            if y < y0 {
                (x, y) = (y0 + d, y0);
            }
            if x + y < backward.0 {
                backward = (x + y, x);
            }
        }
        if (x1 + y1) - backward.0 < forward.0 - (x0 + y0) {
            let (sum, x) = forward;
            Split { x: place(x), y: place(sum - x), minimal: [true, false] }
        } else {
            let (sum, x) = backward;
            Split { x: place(x), y: place(sum - x), minimal: [false, true] }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(old: &str, new: &str) -> Vec<Change> {
        let classes = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
        let (old, new) = (classes(old), classes(new));
        changes(&old, &new, same_ends(&old, &new), (0, false), &|| false).unwrap()
    }

    /// Applied to the old text, the changes give the new one.
    #[test]
    fn changes_lead_from_one_to_the_other() {
        let mut seed = 7_u64;
        let mut random = |most: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        for round in 0..2000 {
            let letters = 2 + round % 7;
            let mut text = || -> String {
                let length = random(60);
                (0..length)
                    .map(|_| char::from(b'a' + u8::try_from(random(letters)).unwrap()))
                    .collect()
            };
            let (old, new) = (text(), text());
            let mut made = String::new();
            let mut at = 0;
            let found = of(&old, &new);
            for change in &found {
                made.push_str(&old[at..change.old.start]);
                made.push_str(&new[change.new.clone()]);
                at = change.old.end;
            }
            made.push_str(&old[at..]);
            assert_eq!(made, new, "{old} {found:?}");
        }
        let (odd, even): (Vec<u32>, Vec<u32>) = (0..4000).map(|n| (n % 7, n % 5)).unzip();
        assert_eq!(changes(&odd, &even, (0, 0), (0, true), &|| true), None, "it was told to stop");
        assert_eq!(of("abc", "abc"), []);
        assert_eq!(of("", "ab"), [Change { old: 0..0, new: 0..2 }]);
        assert_eq!(of("abcabc", "abc"), [Change { old: 3..6, new: 3..3 }], "the last of two");
    }
}
