/** Differences between two texts, word by word. */

export interface Difference {
  /** The last words before the difference, to find the place in the text. */
  readonly after: string
  readonly removed: string
  readonly added: string
}

const CONTEXT = 5
/** Above this many comparisons everything between the common beginning and end counts as one replacement. */
const MAX_COMPARISONS = 4_000_000

/**
 * Returns the changes from one text to another. The common beginning and end are skipped; a longest common subsequence of
 * words (Hirschberg, Commun. ACM 18, 1975) aligns the rest.
 *
 * @example wordDiff('a very big day', 'a big great day')
 * // [{ after: 'a', removed: 'very', added: '' }, { after: 'a big', removed: '', added: 'great' }]
 */
export function wordDiff(before: string, after: string): Difference[] {
  const [a, b] = [before.split(/\s+/).filter(Boolean), after.split(/\s+/).filter(Boolean)]
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail])
    tail += 1
  const [left, right] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)]
  if (left.length === 0 && right.length === 0) return []
  const pairs = left.length * right.length > MAX_COMPARISONS ? [] : commonWords(left, right)
  const differences: Difference[] = []
  let [i, j] = [0, 0]
  for (const [x, y] of [...pairs, [left.length, right.length] as const]) {
    if (i < x || j < y) {
      const context = b.slice(Math.max(0, head + j - CONTEXT), head + j).join(' ')
      differences.push({ after: context, removed: left.slice(i, x).join(' '), added: right.slice(j, y).join(' ') })
    }
    ;[i, j] = [x + 1, y + 1]
  }
  return differences
}

/** Positions of the words of a longest common subsequence, in both lists. */
function commonWords(left: readonly string[], right: readonly string[]): (readonly [number, number])[] {
  const width = right.length + 1
  const length = new Uint16Array((left.length + 1) * width)
  for (let i = left.length - 1; i >= 0; i -= 1)
    for (let j = right.length - 1; j >= 0; j -= 1)
      length[i * width + j] =
        left[i] === right[j]
          ? length[(i + 1) * width + j + 1]! + 1
          : Math.max(length[(i + 1) * width + j]!, length[i * width + j + 1]!)
  const pairs: (readonly [number, number])[] = []
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    if (left[i] === right[j]) {
      pairs.push([i, j])
      i += 1
      j += 1
    } else if (length[(i + 1) * width + j]! >= length[i * width + j + 1]!) i += 1
    else j += 1
  }
  return pairs
}
