/**
 * The made-up news of one UTC day: posts, White House releases and documents of the Federal Register, as the bodies that
 * the sources would send. Every text says that it is a sample. A day depends on its date alone.
 */
import { readFileSync } from 'node:fs'
import { DAY, HOUR, MINUTE } from '../time-range.ts'

/** A body as a source would send it, and when it was seen. */
export interface SampleBody {
  readonly source: 'truth.mirror' | 'wh.news' | 'fr.pi'
  readonly at: number
  readonly body: Buffer
}

interface Draft {
  readonly title: string
  readonly text: string
}

const pools = JSON.parse(readFileSync(new URL('../data/sample.json', import.meta.url), 'utf8')) as {
  readonly places: readonly string[]
  readonly states: readonly string[]
  readonly agencies: readonly string[]
  readonly goods: readonly string[]
  readonly moods: readonly string[]
  readonly posts: Readonly<Record<string, readonly string[]>>
  readonly actions: readonly Draft[]
  readonly releases: readonly (Draft & { readonly path: string })[]
}

const MARK = 'SAMPLE, made up:'
const topics = Object.keys(pools.posts)

/** Everything that is seen on the day, in order of time. */
export function sampleDay(midnight: number): SampleBody[] {
  const random = seededRandom(Math.floor(midnight / DAY))
  const bodies = [...posts(random, midnight), ...papers(random, midnight)]
  return bodies.filter(({ at }) => at < midnight + DAY).sort((a, b) => a.at - b.at)
}

/** Posts come mostly between 12:00 and 03:00 UTC. */
function posts(random: Random, midnight: number): SampleBody[] {
  const bodies: SampleBody[] = []
  const count = random.integer(14, 24)
  for (let n = 0; n < count; n += 1) {
    const hour = random.next() < 0.85 ? 12 + random.next() * 15 : random.next() * 24
    const at = midnight + Math.floor(((hour % 24) * HOUR) / 1000) * 1000 + random.integer(0, 59) * 1000
    const topic = random.pick(topics)
    const text = `${MARK} ${fill(random, random.pick(pools.posts[topic]!))} ${random.pick(pools.moods)} ${fill(random, 'Thanks to {n} friends in {state}!')}`
    bodies.push(post(at, random, text))
    // Sometimes a post is posted again with another word.
    if (random.next() < 0.03) bodies.push(post(at + random.integer(20, 100) * MINUTE, random, `${text} Really!`))
  }
  return bodies
}

function post(at: number, random: Random, text: string): SampleBody {
  const id = String((BigInt(at + random.integer(0, 900)) << 16n) + BigInt(random.integer(0, 65_535)))
  const item = `<item><title><![CDATA[${text.slice(0, 60)}]]></title><description><![CDATA[<p>${text}</p>]]></description><pubDate>${new Date(at).toUTCString()}</pubDate><truth:originalUrl>https://sample.invalid/posts/${id}</truth:originalUrl><truth:originalId>${id}</truth:originalId></item>`
  const body = `<rss version="2.0" xmlns:truth="https://truthsocial.com/ns"><channel><title>Sample</title>${item}</channel></rss>`
  return { source: 'truth.mirror', at: at + random.integer(20, 170) * 1000, body: Buffer.from(body) }
}

function papers(random: Random, midnight: number): SampleBody[] {
  const bodies: SampleBody[] = []
  const weekday = new Date(midnight).getUTCDay()
  const isWeekend = weekday === 0 || weekday === 6
  const count = isWeekend ? random.integer(0, 2) : random.integer(3, 6)
  for (let n = 0; n < count; n += 1) {
    const at = midnight + random.integer(13 * 60, 22 * 60) * MINUTE
    const isAction = random.next() < 0.4
    const draft = isAction
      ? { path: 'presidential-actions', ...random.pick(pools.actions) }
      : random.pick(pools.releases)
    const words = fillTogether(random, [draft.title, draft.text])
    const paper = {
      at,
      path: draft.path,
      title: words[0]!,
      text: `${MARK} ${words[1]!}`,
      key: `https://sample.invalid/?p=${midnight / DAY}${n}`,
    }
    const seen = at + random.integer(15, 75) * 1000
    bodies.push(page(seen, paper))
    // Sometimes a text is corrected without notice.
    if (random.next() < 0.12)
      bodies.push(
        page(seen + random.integer(30, 110) * MINUTE, {
          ...paper,
          text: `${paper.text} Corrected: the figure includes ${random.integer(2, 9)} more.`,
        }),
      )
    if (isAction) bodies.push(inspection(random, midnight, n, paper.title))
  }
  return bodies
}

interface Paper {
  readonly at: number
  readonly path: string
  readonly title: string
  readonly text: string
  readonly key: string
}

function page(seen: number, { at, path, title, text, key }: Paper): SampleBody {
  const link = `https://sample.invalid/${path}/${new Date(at).toISOString().slice(0, 7).replace('-', '/')}/${title.toLowerCase().replace(/[^a-z0-9]+/g, '-')}/`
  const item = `<item><title>${title}</title><link>${link}</link><pubDate>${new Date(at).toUTCString()}</pubDate><guid isPermaLink="false">${key}</guid><content:encoded><![CDATA[<nav>Menu</nav><p>${text}</p>]]></content:encoded></item>`
  const body = `<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>Sample</title>${item}</channel></rss>`
  return { source: 'wh.news', at: seen, body: Buffer.from(body) }
}

/** The document on public inspection. It is filed the same day, so that a day does not depend on another. */
function inspection(random: Random, midnight: number, n: number, title: string): SampleBody {
  const filed = midnight + 22 * HOUR + random.integer(0, 50) * MINUTE
  const date = new Date(midnight).toISOString().slice(0, 10)
  const number = `S${date.slice(0, 4)}-${Math.floor(midnight / DAY)}${n}`
  const document = {
    document_number: number,
    type: 'Presidential Document',
    title: `${title} `,
    filed_at: new Date(filed).toISOString(),
    publication_date: date,
    signing_date: date,
    html_url: `https://sample.invalid/documents/${number}`,
  }
  const body = JSON.stringify({ count: 1, results: [document] })
  return { source: 'fr.pi', at: filed + random.integer(10, 110) * 1000, body: Buffer.from(body) }
}

function fill(random: Random, template: string): string {
  return fillTogether(random, [template])[0]!
}

/** Fills the blanks of several templates with the same words. */
function fillTogether(random: Random, templates: readonly string[]): string[] {
  const words: Record<string, string> = {
    place: random.pick(pools.places),
    state: random.pick(pools.states),
    agency: random.pick(pools.agencies),
    goods: random.pick(pools.goods),
    n: String(random.integer(3, 97)),
    m: String(random.integer(2, 19)),
  }
  const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
  return templates.map((template) =>
    template.replace(/\{(\w+)\}/g, (_, name: string) => {
      const word = words[name.toLowerCase()] ?? ''
      return /^[A-Z]/.test(name) ? capital(word) : word
    }),
  )
}

/** The 32-bit finaliser of MurmurHash3 (Appleby, public domain). */
function murmurMix(value: number): number {
  let h = value | 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

interface Random {
  /** In [0, 1). */
  next(): number
  /** An integer in [from, to]. */
  integer(from: number, to: number): number
  pick<Value>(list: readonly Value[]): Value
}

/**
 * A sequence of pseudo-random numbers that is the same in every process. Stored samples depend on these exact numbers, so
 * another generator would change days that were already written.
 */
function seededRandom(seed: number): Random {
  let at = murmurMix(seed ^ 0x9e3779b9)
  const next = (): number => {
    at = (at + 0x6d2b79f5) | 0
    return murmurMix(at) / 4294967296
  }
  const integer = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1))
  return { next, integer, pick: (list) => list[integer(0, list.length - 1)]! }
}
