/**
 * Near duplicates. Three rules, the surest first: one post, or one paper by its number, seen in two places; a White House
 * page and the Federal Register's document of one title, signed within three days; texts whose sets of three-word
 * shingles overlap by 80 % (Jaccard index; Broder 1997) within seven days. What the Federal Register says of a paper are
 * facts in fixed words (numbers, days), which tell nothing of what two papers have in common.
 */
import type { Item, Source } from '../sources/source.ts'

export interface Candidate {
  readonly seq: number
  readonly cluster: string
  readonly source: string
  readonly publisher: string
  readonly at: number
  readonly post: string | null
  readonly second: number
  readonly title: string
  readonly signedOn: string | null
  readonly isSocial: boolean
  readonly shingles: ReadonlySet<string>
}

/** How long texts are compared. */
const ALIKE_MS = 7 * 86_400_000
/** How long after a signing the Federal Register's document may come. */
export const REMEMBERED_MS = 30 * 86_400_000
const SIGNED_MS = 3 * 86_400_000
const ALIKE = 0.8
/** Two copies of one post are cut and spaced differently. */
const DOUBTFUL = 0.3
const WIDTH = 3

/**
 * Words of a text for comparison: lower case, no links where anything else is said, no signature, no punctuation.
 *
 * @example wordsFor('RT @Example Hello, World! https://example.org') // ["hello", "world"]
 */
export function comparableWords(text: string): string[] {
  const plain = text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/^rt:?\s*(@\w+:?)?/, ' ')
  const bare = plain.replace(/https?:\/\/\S+/g, ' ')
  const said = /[\p{L}\p{N}]/u.test(bare)
    ? bare
    : plain.replace(/https?:\/\/(www\.)?/g, ' ').replace(/[^\p{L}\p{N}]+/gu, '')
  return said
    .replace(/thank you for your attention to this matter/g, ' ')
    .replace(
      /(president )?donald j\.? trump,? president of the united states of america|president (donald j\.? trump|djt)\s*$/g,
      ' ',
    )
    .replace(/[’']/g, '')
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
}

/** Sets of three words in a row; a shorter text is one shingle, no text is none. */
export function shinglesOf(text: string): Set<string> {
  const words = comparableWords(text)
  if (words.length === 0) return new Set()
  if (words.length < WIDTH) return new Set([words.join(' ')])
  return new Set(words.slice(WIDTH - 1).map((_, at) => words.slice(at, at + WIDTH).join(' ')))
}

/**
 * Shared shingles over all shingles; 0 for an empty set.
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

/** The Register adds to some titles what the paper is and when it was signed: "(Memorandum of August 7, 2020)". */
const SUFFIX = /\s*\([^()]* of [A-Z][a-z]+ \d{1,2}, \d{4}\)$/

/** What of a record is compared. */
export type Compared = Pick<Item, 'kind' | 'title' | 'text' | 'post' | 'signedOn' | 'occurredAt' | 'publishedAt'>

/** What later records are compared with. */
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

/** The earliest earlier record that is the same news, or null. `among` is in order of appearance. */
export function findDuplicate(one: Candidate, among: readonly Candidate[]): Candidate | null {
  return among.find((other) => one.at - other.at <= REMEMBERED_MS && isSame(one, other)) ?? null
}

function isSame(one: Candidate, other: Candidate): boolean {
  if (one.post !== null && one.post === other.post) return true
  if (isOnePost(one, other)) return true
  if (one.signedOn !== null && other.signedOn !== null && one.publisher !== other.publisher)
    return one.title !== '' && one.title === other.title && daysApart(one.signedOn, other.signedOn) <= SIGNED_MS
  if (one.at - other.at > ALIKE_MS) return false
  const [a, b] = [one.shingles, other.shingles]
  if (Math.min(a.size, b.size) < ALIKE * Math.max(a.size, b.size)) return false
  return jaccard(a, b) >= ALIKE
}

/**
 * A recording that lost the post's id keeps its second, and what it says must not speak against it. Pictures without a
 * word say nothing, so only their ids can join them.
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
  return jaccard(a, b) >= DOUBTFUL
}

function daysApart(a: string, b: string): number {
  return Math.abs(Date.parse(a) - Date.parse(b))
}
