//! Plots as inline SVG. Colours are classes of the page's style sheet.

use super::html::escape;
use crate::curves::{Bin, Point};
use crate::metrics::ratio;
use crate::outcome::{ClassRow, Outcome};
use std::fmt::Write as _;

/// Side of the square that a curve is drawn in, and the room around it.
const SIDE: f64 = 260.0;
const LEFT: f64 = 48.0;
const TOP: f64 = 12.0;

/// One bar a class, as long as its share of each outcome.
#[must_use]
pub fn bars(classes: &[ClassRow]) -> String {
    const WIDTH: f64 = 520.0;
    const STEP: usize = 24;
    let height = classes.len() * STEP + 8;
    let mut out = format!(
        "<svg viewBox=\"0 0 760 {height}\" width=\"760\" role=\"img\" aria-label=\"outcomes by class\">\n"
    );
    for (n, class) in classes.iter().enumerate() {
        let y = n * STEP + 4;
        let _ = write!(
            out,
            "<text x=\"148\" y=\"{}\" text-anchor=\"end\">{}</text>",
            y + 13,
            escape(&class.class)
        );
        let mut x = 156.0;
        for outcome in Outcome::ALL {
            let cases = class.outcomes.get(&outcome).copied().unwrap_or(0);
            let width = ratio(cases, class.cases) * WIDTH;
            if cases > 0 {
                let _ = write!(
                    out,
                    "<rect class=\"{name}\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"17\"><title>{cases} {name}</title></rect>",
                    name = outcome.name()
                );
            }
            x += width;
        }
        let _ = writeln!(
            out,
            "<text x=\"684\" y=\"{}\">{}/{}</text>",
            y + 13,
            class.passed,
            class.cases
        );
    }
    out.push_str("</svg>\n");
    out
}

/// How often the first section is gold, by Confidence; on the diagonal they agree.
#[must_use]
pub fn reliability(bins: &[Bin]) -> String {
    let mut out = axes("Confidence", "share with gold first", "reliability of Confidence");
    out.push_str(&line("diagonal", [(0.0, 0.0), (1.0, 1.0)].into_iter()));
    out.push_str(&line("curve", bins.iter().map(|b| (b.confidence, b.correct))));
    for bin in bins {
        let (x, y) = at(bin.confidence, bin.correct);
        let _ = writeln!(
            out,
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{} cases, Confidence {:.2}, gold first {:.2}</title></circle>",
            bin.cases, bin.confidence, bin.correct
        );
    }
    out.push_str("</svg>\n");
    out
}

/// What a floor lets through: near-misses up, answerables to the right; further right and lower is
/// better.
#[must_use]
pub fn near_miss(points: &[Point]) -> String {
    let mut out =
        axes("answerables answered", "near-misses answered", "near-misses against answerables");
    out.push_str(&line("diagonal", [(0.0, 0.0), (1.0, 1.0)].into_iter()));
    out.push_str(&line("curve", points.iter().map(|p| (p.answerable, p.near_miss))));
    for point in points {
        let (x, y) = at(point.answerable, point.near_miss);
        let _ = writeln!(
            out,
            "<circle class=\"hover\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>floor {:.3}: {:.2} of answerables, {:.2} of near-misses</title></circle>",
            point.floor, point.answerable, point.near_miss
        );
    }
    out.push_str("</svg>\n");
    out
}

fn axes(x: &str, y: &str, label: &str) -> String {
    let (width, height) = (LEFT + SIDE + 12.0, TOP + SIDE + 40.0);
    let mut out = format!(
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" aria-label=\"{label}\">\n\
         <rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\"/>\n"
    );
    for tick in [0.0, 0.5, 1.0] {
        let (left, _) = at(tick, 0.0);
        let (_, top) = at(0.0, tick);
        let _ = writeln!(
            out,
            "<text x=\"{left:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tick}</text><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            TOP + SIDE + 16.0,
            LEFT - 5.0,
            top + 4.0
        );
    }
    let middle = TOP + SIDE / 2.0;
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{x}</text><text x=\"12\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 12 {middle:.1})\">{y}</text>",
        LEFT + SIDE / 2.0,
        TOP + SIDE + 34.0
    );
    out
}

fn line(class: &str, points: impl Iterator<Item = (f64, f64)>) -> String {
    let points: Vec<String> = points
        .map(|(x, y)| {
            let (x, y) = at(x, y);
            format!("{x:.1},{y:.1}")
        })
        .collect();
    format!("<polyline class=\"{class}\" points=\"{}\"/>\n", points.join(" "))
}

/// A point of the unit square in the plot.
fn at(x: f64, y: f64) -> (f64, f64) {
    (LEFT + x.clamp(0.0, 1.0) * SIDE, TOP + (1.0 - y.clamp(0.0, 1.0)) * SIDE)
}
