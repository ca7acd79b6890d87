//! Every limit of the product in one place, with its unit and the relations they must keep.

/// The most tokens a chunk's text may hold, counted with the embedder's tokenizer.
pub const CHUNK_TOKENS_MAX: usize = 800;
/// The tokens the embedder sees at once, special tokens included.
pub const WINDOW_TOKENS_MAX: usize = 256;
/// The tokens of a window that its contextual header (title and heading trail) may take.
pub const WINDOW_HEADER_TOKENS_MAX: usize = 64;
/// The tokens of a span of a window, which has a vector of its own: about two sentences.
pub const SPAN_TOKENS_MAX: usize = 40;
/// The special tokens that a BERT tokenizer adds to a text: `[CLS]` and `[SEP]`.
pub const SPECIAL_TOKENS: usize = 2;
/// The largest document that is indexed, in bytes (8 MiB).
pub const DOCUMENT_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The longest heading or title, in bytes; the rest of a longer one is cut off. Each section holds all the
/// headings above it, so that a heading of a megabyte would be there thousands of times.
pub const HEADING_BYTES_MAX: usize = 1024;
/// The longest document path, in bytes (as Linux's `PATH_MAX`, less the terminator).
pub const DOC_PATH_BYTES_MAX: usize = 4095;
/// The longest component of a document path, in bytes (as Linux's `NAME_MAX`).
pub const DOC_PATH_COMPONENT_BYTES_MAX: usize = 255;
/// The longest question, in bytes: a pasted stack trace fits, a log file does not.
pub const QUESTION_BYTES_MAX: usize = 64 * 1024;
/// The largest request body, in bytes: JSON escapes can make a question six times as long.
pub const BODY_BYTES_MAX: usize = 512 * 1024;
/// The distinct terms of a question that are looked up; the most informative are kept.
pub const QUESTION_TERMS_MAX: usize = 64;
/// The most sections a reply may name in `citations` and `related`.
pub const K_MAX: usize = 50;
/// How many sections a reply names when the question does not say.
pub const K_DEFAULT: usize = 5;
/// Nearest sections that a refusal names when nobody says how many: they claim nothing, and the more of
/// them there are, the fewer false refusals lose what was asked for (docs/measurements.md).
pub const NEAREST_DEFAULT: usize = 8;
/// The most headings a refusal says it searched.
pub const SEARCHED_MAX: usize = 20;
/// How long the ONNX Runtime library may take to load, in seconds, before it counts as hanging.
pub const ONNX_LOAD_SECONDS_MAX: u64 = 20;
/// Windows from which the HNSW graph serves instead of the exact scan; the scan takes about 15 ns a
/// window and core (docs/measurements.md), so up to here it stays under a few milliseconds.
pub const GRAPH_SERVES_FROM: usize = 200_000;
/// Generations kept after a publish, the current one among them.
pub const GENERATIONS_KEPT: usize = 3;

const _: () = assert!(WINDOW_HEADER_TOKENS_MAX + SPECIAL_TOKENS < WINDOW_TOKENS_MAX / 2);
const _: () = assert!(WINDOW_TOKENS_MAX <= CHUNK_TOKENS_MAX);
const _: () = assert!(QUESTION_BYTES_MAX * 6 < BODY_BYTES_MAX);
const _: () = assert!(K_DEFAULT <= K_MAX);
const _: () = assert!(GENERATIONS_KEPT >= 2);
