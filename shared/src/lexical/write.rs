//! Writing a lexical index.

use super::{Fields, LexicalDoc, LexicalError, TEXT_FIELDS, TOKENIZER, TextField, at, schema};
use crate::analyse::{Term, TermKind, analyse};
use std::path::{Path, PathBuf};
use tantivy::directory::MmapDirectory;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use tantivy::{Index, IndexSettings, IndexWriter, TantivyDocument};

/// Memory the writer may use before it writes a segment, in bytes.
const WRITER_BYTES: usize = 64 * 1024 * 1024;

/// Writes a lexical index.
pub struct LexicalWriter {
    path: PathBuf,
    writer: IndexWriter,
    fields: Fields,
}

impl LexicalWriter {
    /// Starts an index in an empty directory.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn create(path: &Path) -> Result<Self, LexicalError> {
        let (schema, fields) = schema();
        let directory = MmapDirectory::open(path).map_err(|e| at(path)(e.into()))?;
        let index = Index::create(directory, schema, IndexSettings::default()).map_err(at(path))?;
        index.tokenizers().register(TOKENIZER, Lines);
        let writer = index.writer_with_num_threads(1, WRITER_BYTES).map_err(at(path))?;
        Ok(Self { path: path.to_owned(), writer, fields })
    }

    /// Adds the section with this number.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn add(&mut self, section: u64, doc: &LexicalDoc<'_>) -> Result<(), LexicalError> {
        let analysed = [doc.title, doc.trail, doc.prose, doc.code].map(analyse);
        let mut document = TantivyDocument::default();
        document.add_u64(self.fields.section, section);
        for field in TEXT_FIELDS {
            let tokens = match field {
                TextField::Ident => {
                    tokens(analysed.iter().flatten().filter(|t| t.kind == TermKind::Whole), false)
                }
                TextField::Code => tokens(words(&analysed[3]), false),
                _ => tokens(words(&analysed[field as usize]), true),
            };
            document.add_text(self.fields.text[field as usize], &tokens);
        }
        self.writer.add_document(document).map_err(at(&self.path))?;
        Ok(())
    }

    /// Commits, merges into one segment and closes.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn finish(mut self) -> Result<(), LexicalError> {
        self.writer.commit().map_err(at(&self.path))?;
        let segments = self.writer.index().searchable_segment_ids().map_err(at(&self.path))?;
        if segments.len() > 1 {
            self.writer.merge(&segments).wait().map_err(at(&self.path))?;
        }
        self.writer.garbage_collect_files().wait().map_err(at(&self.path))?;
        self.writer.wait_merging_threads().map_err(at(&self.path))?;
        share(&self.path).map_err(|e| at(&self.path)(e.into()))
    }
}

/// Gives every file the permissions that a new file gets here: tantivy writes some of them for their
/// owner alone, and the daemon may run as another user.
fn share(dir: &Path) -> std::io::Result<()> {
    let probe = dir.join(".permissions.lock");
    let usual = std::fs::File::create(&probe)?.metadata()?.permissions();
    std::fs::remove_file(&probe)?;
    for entry in std::fs::read_dir(dir)? {
        std::fs::set_permissions(entry?.path(), usual.clone())?;
    }
    Ok(())
}

fn words(terms: &[Term]) -> impl Iterator<Item = &Term> {
    terms.iter().filter(|t| t.kind == TermKind::Word)
}

/// The terms of a field, each ended by [`END`].
fn tokens<'a>(terms: impl Iterator<Item = &'a Term>, stemmed: bool) -> String {
    let mut text = String::new();
    for term in terms {
        text.push_str(if stemmed { &term.stem } else { &term.surface });
        text.push(END);
    }
    text
}

/// Ends a term on its way to tantivy: no term holds it, since it separates words.
const END: char = '\n';

/// Gives tantivy our terms as they are. (It would take lists of tokens as well, but carries them as
/// JSON.)
#[derive(Clone)]
struct Lines;

struct LineStream<'a> {
    rest: std::str::SplitTerminator<'a, char>,
    token: Token,
}

impl Tokenizer for Lines {
    type TokenStream<'a> = LineStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> LineStream<'a> {
        LineStream { rest: text.split_terminator(END), token: Token::default() }
    }
}

impl TokenStream for LineStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(term) = self.rest.next() else { return false };
        self.token.text.clear();
        self.token.text.push_str(term);
        self.token.position = self.token.position.wrapping_add(1);
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
