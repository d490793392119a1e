/** The tests that SECURITY.md names as links: `[title](file)`. A title that ends in "…" stands for all that begin like it. */

export interface NamedTest {
  /** The file with the text of the title. */
  readonly file: string
  /** The title without its `describe`, or the beginning of several. */
  readonly title: string
  readonly isBeginning: boolean
}

/** Reads the tests that a page names. */
export function namedTests(markdown: string): readonly NamedTest[] {
  return [...markdown.matchAll(/\[([^\]]+)\]\((test\/[\w./-]+\.ts)\)/g)].map(([, text = '', file = '']) => {
    const isBeginning = text.endsWith('…')
    return { file, isBeginning, title: isBeginning ? text.slice(0, -1).trimEnd() : text }
  })
}

/** The tests that none of the titles is, so they did not run, or did not pass. */
export function notAmong(named: readonly NamedTest[], titles: Iterable<string>): readonly NamedTest[] {
  const all = [...titles]
  const exact = new Set(all)
  return named.filter(({ title, isBeginning }) =>
    isBeginning ? !all.some((each) => each.startsWith(title)) : !exact.has(title),
  )
}
