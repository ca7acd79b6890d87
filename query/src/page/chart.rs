//! A histogram as inline SVG, without a style attribute, which the security policy forbids; the
//! numbers stand in a table beside it for whoever does not see it.

use maud::{Markup, html};

/// One bar.
pub struct Bar {
    /// What it counts.
    pub label: String,
    /// How many.
    pub count: u64,
}

const BAR_WIDTH: u64 = 40;
const GAP: u64 = 6;
const HEIGHT: u64 = 120;

/// A histogram with its title.
#[must_use]
pub fn histogram(title: &str, bars: &[Bar]) -> Markup {
    let most = bars.iter().map(|b| b.count).max().unwrap_or(0).max(1);
    let width = bars.len() as u64 * (BAR_WIDTH + GAP);
    let height = HEIGHT + 40;
    let shape = |(n, bar): (u64, &Bar)| {
        let tall = if bar.count == 0 { 0 } else { (bar.count * HEIGHT / most).max(2) };
        let x = n * (BAR_WIDTH + GAP) + GAP / 2;
        html! {
            rect x=(x) y=(20 + HEIGHT - tall) width=(BAR_WIDTH) height=(tall) rx="2" class="bar" {}
            @if bar.count > 0 {
                text x=(x + BAR_WIDTH / 2) y=(14 + HEIGHT - tall) class="count" text-anchor="middle" { (bar.count) }
            }
            text x=(x + BAR_WIDTH / 2) y=(HEIGHT + 34) class="label" text-anchor="middle" { (bar.label) }
        }
    };
    html! {
        figure.chart {
            figcaption { (title) }
            div.scroll tabindex="0" role="region" aria-label=(title) {
                svg viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) aria-hidden="true" {
                    line x1="0" x2=(width) y1=(20 + HEIGHT) y2=(20 + HEIGHT) class="axis" {}
                    @for bar in (0u64..).zip(bars) { (shape(bar)) }
                }
            }
            table.quiet {
                tr { th scope="col" { "Up to" } th scope="col" { "Count" } }
                @for bar in bars { tr { td { (bar.label) } td { (bar.count) } } }
            }
        }
    }
}
