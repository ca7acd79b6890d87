//! What a refusal says: the reason, what was searched, and the nearest sections.

use super::{Engine, Verdict};
use crate::passage::preview;
use crate::reply::{Band, I_DO_NOT_KNOW, Nearest, Refusal, RefusalReason, Searched};
use runbook_shared::chunk::innermost;
use runbook_shared::limits::SEARCHED_MAX;
use runbook_shared::retrieval::arms::Hit;
use runbook_shared::score::Confidence;

impl Engine<'_> {
    pub(super) fn refuse(
        &self,
        reason: RefusalReason,
        confidence: Confidence,
        band: Band,
        route: Vec<String>,
        explain: Option<serde_json::Value>,
    ) -> Verdict {
        let nearest = self.spread(self.ask.nearest).iter().map(|h| self.nearest(h)).collect();
        Verdict {
            answer: I_DO_NOT_KNOW.to_owned(),
            band,
            citations: Vec::new(),
            related: Vec::new(),
            confidence,
            refusal: Some(Refusal {
                reason,
                message: reason.explanation().to_owned(),
                searched: self.searched(),
                nearest,
            }),
            route,
            corpus: self.found.hits.first().map_or(0, |h| h.corpus),
            degraded: self.degraded,
            explain,
        }
    }

    fn nearest(&self, hit: &Hit) -> Nearest {
        let passage = self.passage(hit).0;
        let citation = self.cite(hit, &passage);
        Nearest {
            path: citation.path,
            heading: citation.heading,
            lines: citation.lines,
            url: citation.url,
            bm25: hit.bm25.0,
            cosine: hit.cosine.map(|c| c.0),
            preview: preview(&passage),
            repo: citation.repo,
        }
    }

    /// Headings that either arm put near the top, by turns.
    fn searched(&self) -> Vec<Searched> {
        let mut lexical: Vec<&Hit> = self.found.hits.iter().filter(|h| h.bm25.0 > 0.0).collect();
        lexical.sort_by(|a, b| b.bm25.0.total_cmp(&a.bm25.0));
        let mut dense: Vec<&Hit> = self.found.hits.iter().filter(|h| h.cosine.is_some()).collect();
        dense.sort_by(|a, b| {
            b.cosine.map_or(0.0, |c| c.0).total_cmp(&a.cosine.map_or(0.0, |c| c.0))
        });
        let mut searched: Vec<Searched> = Vec::new();
        for at in 0..lexical.len().max(dense.len()) {
            for hit in [lexical.get(at), dense.get(at)].into_iter().flatten() {
                let (chunk, section) = self.corpora[hit.corpus].generation.section(hit.section);
                let heading = innermost(&section.heading_path, &chunk.title).to_owned();
                let entry = Searched { path: chunk.path.clone(), heading };
                if searched.len() < SEARCHED_MAX && !searched.contains(&entry) {
                    searched.push(entry);
                }
            }
        }
        searched
    }
}
