/**
 * Clusters of near duplicates. Two records are the same news if
 * - they have the same post id or document number,
 * - or one is a White House page and the other the Federal Register's document of the same title, signed within three days,
 * - or their sets of three-word shingles overlap by 80 % (Jaccard index; Broder 1997) within seven days.
 *
 * Texts of the Federal Register are not compared: they are numbers and dates in fixed phrases, which all documents share.
 */
import type { Item, Source } from '../sources/source.ts'

/** A record prepared for comparison with others. */
export interface Candidate {
  readonly seq: number
  readonly cluster: string
  readonly source: string
  readonly publisher: string
  /** When it became available. */
  readonly at: number
  readonly post: string | null
  /** When it happened, otherwise when it was published: epoch seconds. */
  readonly second: number
  readonly title: string
  readonly signedOn: string | null
  readonly isSocial: boolean
  readonly shingles: ReadonlySet<string>
}

/** Texts further apart than this are not compared. */
export const SIMILAR_MS = 7 * 86_400_000
/** How long a record can be joined: the Federal Register may publish a document weeks after it was signed. */
export const REMEMBERED_MS = 30 * 86_400_000
const SIGNED_MS = 3 * 86_400_000
/** Least Jaccard index of two similar texts. */
const SIMILAR = 0.8
/** Least Jaccard index of two copies of one post, which mirrors cut and space differently. */
const SAME_POST = 0.3
const WIDTH = 3

/**
 * Words of a text for comparison: lower case, without punctuation and signature, and without links unless the text is only
 * a link.
 *
 * @example comparableWords('RT @Example Hello, World! https://example.org') // ["hello", "world"]
 */
export function comparableWords(text: string): string[] {
  const plain = text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/^rt:?\s*(@\w+:?)?/, ' ')
  const bare = plain.replace(/https?:\/\/\S+/g, ' ')
  const content = /[\p{L}\p{N}]/u.test(bare)
    ? bare
    : plain.replace(/https?:\/\/(www\.)?/g, ' ').replace(/[^\p{L}\p{N}]+/gu, '')
  return content
    .replace(/thank you for your attention to this matter/g, ' ')
    .replace(
      /(president )?donald j\.? trump,? president of the united states of america|president (donald j\.? trump|djt)\s*$/g,
      ' ',
    )
    .replace(/[’']/g, '')
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
}

/** The three-word shingles of a text. A shorter text is one shingle; an empty text has none. */
export function shinglesOf(text: string): Set<string> {
  const words = comparableWords(text)
  if (words.length === 0) return new Set()
  if (words.length < WIDTH) return new Set([words.join(' ')])
  return new Set(words.slice(WIDTH - 1).map((_, at) => words.slice(at, at + WIDTH).join(' ')))
}

/**
 * The Jaccard index: shared elements divided by all elements; 0 if a set is empty.
 *
 * @example jaccard(new Set(['a', 'b', 'c']), new Set(['b', 'c', 'd'])) // 0.5
 */
export function jaccard(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const [small, large] = a.size < b.size ? [a, b] : [b, a]
  if (small.size === 0) return 0
  let shared = 0
  for (const shingle of small) if (large.has(shingle)) shared += 1
  return shared / (small.size + large.size - shared)
}

/** The Federal Register adds the kind and date to some titles: "(Memorandum of August 7, 2020)". */
const SUFFIX = /\s*\([^()]* of [A-Z][a-z]+ \d{1,2}, \d{4}\)$/

/** The fields of an item that are compared. */
export type Compared = Pick<Item, 'kind' | 'title' | 'text' | 'post' | 'signedOn' | 'occurredAt' | 'publishedAt'>

/** Prepares a record for comparison with later records. */
export function candidateOf(
  item: Compared,
  source: Pick<Source, 'id' | 'publisher'>,
  at: number,
  seq: number,
  cluster: string,
): Candidate {
  return {
    seq,
    cluster,
    source: source.id,
    publisher: source.publisher,
    at,
    post: item.post,
    second: Math.floor((item.occurredAt ?? item.publishedAt) / 1000),
    title: comparableWords((item.title ?? '').replace(SUFFIX, '')).join(' '),
    signedOn: item.signedOn,
    isSocial: item.kind.startsWith('social.'),
    shingles: item.kind.startsWith('fr.') ? new Set() : shinglesOf(item.text),
  }
}

/** The first record that is the same news, or null. `among` is in order of appearance, or around the time of an older item. */
export function findDuplicate(one: Candidate, among: Iterable<Candidate>): Candidate | null {
  for (const other of among) if (Math.abs(one.at - other.at) <= REMEMBERED_MS && isSame(one, other)) return other
  return null
}

function isSame(one: Candidate, other: Candidate): boolean {
  if (one.post !== null && one.post === other.post) return true
  if (isOnePost(one, other)) return true
  if (one.signedOn !== null && other.signedOn !== null && one.publisher !== other.publisher)
    return one.title !== '' && one.title === other.title && timeBetween(one.signedOn, other.signedOn) <= SIGNED_MS
  if (Math.abs(one.at - other.at) > SIMILAR_MS) return false
  const [a, b] = [one.shingles, other.shingles]
  if (Math.min(a.size, b.size) < SIMILAR * Math.max(a.size, b.size)) return false
  return jaccard(a, b) >= SIMILAR
}

/**
 * Returns true for two copies of one post of which one lost its id: both have the same second, and their texts must not
 * differ much. Posts without text can only be joined by their ids.
 */
function isOnePost(one: Candidate, other: Candidate): boolean {
  const isPlausible =
    one.isSocial &&
    other.isSocial &&
    one.source !== other.source &&
    one.publisher === other.publisher &&
    (one.post === null || other.post === null) &&
    one.second === other.second
  if (!isPlausible) return false
  const [a, b] = [one.shingles, other.shingles]
  return jaccard(a, b) >= SAME_POST
}

/** Milliseconds between two dates. */
function timeBetween(a: string, b: string): number {
  return Math.abs(Date.parse(a) - Date.parse(b))
}
