/**
 * Rows of the POTUS feeds: the items of ordinary days with the bodies of all sources, what is loaded on the first day, and
 * the polls that found nothing. Texts and bodies are as long as recorded ones, and gzip packs them as well.
 */
import { gzipSync } from 'node:zlib'
import type { OpenDatabase } from '../../../../gateway/stores/database.ts'
import { LOG_DAYS } from '../../../../plugins/potus/answers/feed-health.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'
import { parseBody } from '../../../../plugins/potus/sources/parsers.ts'
import { readSources, type Source } from '../../../../plugins/potus/sources/source.ts'
import { migrations } from '../../../../plugins/potus/store/tables.ts'
import { openTestFeed, postId, postsOf, rssOf, type TestFeed } from '../../../plugins/potus/test-feed.ts'
import type { Subject } from './stored-rows.ts'

const START = Date.UTC(2026, 2, 2)
const DAY = 86_400_000
/** New items of a day, and how often the list of public inspection changes. */
const DAILY = { posts: 20, releases: 3, documents: 1, press: 5, inspections: 5 }
/** The mirror and the archive both store a post; inspection and the Register both store a document. */
const EVENTS_A_DAY = 2 * DAILY.posts + DAILY.releases + 2 * DAILY.documents + DAILY.press
/** Rows of the first load of `npm run lab -- first-day`. */
const FIRST_DAY = { events: 40_229, posts: 36_000, releases: 3000, documents: 1500 }

/** So many words, drawn evenly, are packed to a third by gzip, as the texts of the White House are. */
const VOCABULARY = Array.from({ length: 500 }, (_, n) => {
  const random = seededRandom(n + 1)
  return Array.from({ length: 3 + Math.floor(7 * random()) }, () => 'abcdefghilmnoprstuvw'[Math.floor(20 * random())]).join('') // prettier-ignore
})

/** A text of its own for each number, about `length` characters long. */
function textOf(n: number, length: number): string {
  const random = seededRandom(n + 1_000_000)
  let text = ''
  while (text.length < length) text += `${VOCABULARY[Math.floor(VOCABULARY.length * random())] as string} `
  return text
}

/** Numbers, newest first. */
const numbers = (newest: number, count: number): number[] => Array.from({ length: count }, (_, n) => newest - n)

const timeOf = (n: number, perDay: number): number => START + (n * DAY) / perDay
const post = (n: number) => {
  const at = timeOf(n, DAILY.posts)
  return { id: postId(at, (n + 10_000) % 1000), text: textOf(n, 70 + 480 * seededRandom(n + 10_000)()), at }
}
const row = ({ id, text, at }: ReturnType<typeof post>) => ({
  id,
  created_at: new Date(at).toISOString(),
  content: `<p>${text}</p>`,
  media: [],
  replies_count: at % 7919,
  reblogs_count: at % 8017,
  favourites_count: at % 9973,
})
const list = (rows: readonly object[]): Buffer => gzipSync(JSON.stringify(rows))

/** A menu of 9 kB, which every item of the White House begins with. */
const MENU = `<nav>${textOf(-1, 9000)}</nav>`
const release = (n: number) => ({ key: `r${n}`, text: `${MENU}${textOf(20_000 + n, 7000)}`, at: timeOf(n, DAILY.releases) }) // prettier-ignore
const statement = (n: number) => ({ key: `s${n}`, text: textOf(40_000 + n, 3000), at: timeOf(n, DAILY.press) })
const day = (time: number): string => new Date(time).toISOString().slice(0, 10)
const document = (n: number, type = 'Presidential Document', at = timeOf(n, DAILY.documents)) => ({
  document_number: `2026-${10_000 + n}`,
  type,
  title: textOf(60_000 + n, 60).trim(),
  abstract: null,
  html_url: `https://www.federalregister.gov/documents/2026/03/02/2026-${10_000 + n}/${textOf(60_000 + n, 60)
    .trim()
    .replaceAll(' ', '-')}`,
  pdf_url: `https://public-inspection.federalregister.gov/2026-${10_000 + n}.pdf?${Math.floor(START / 1000)}`,
  publication_date: day(at),
  filed_at: new Date(at).toISOString(),
  agencies: [{ raw_name: 'DEPARTMENT OF COMMERCE', name: 'Commerce Department', id: 54, slug: 'commerce-department', url: 'https://www.federalregister.gov/agencies/commerce-department' }], // prettier-ignore
  excerpts: null,
  editorial_note: null,
  subject_1: null,
  subject_2: null,
  subject_3: null,
  toc_doc: null,
  toc_subject: null,
})
const found = (results: readonly object[]): string => JSON.stringify({ count: results.length, results })

/** Answers of the sources after so many posts. */
const bodies = {
  mirror: (n: number) => postsOf(numbers(n, 100).map(post)),
  releases: (n: number) => rssOf(numbers(n, 30).map(release)),
  press: (n: number) => rssOf(numbers(n, 10).map(statement)),
  register: (n: number) => found(numbers(n, 100).map((one) => document(one))),
  /** Presidential documents among 190 others, which change with each issue. */
  inspection: (n: number, issue: number, at: number) =>
    found([
      ...numbers(n, 2).map((one) => document(one)),
      ...numbers(issue * 40, 190).map((one) => document(100_000 + one, 'Notice', at)),
    ]),
}

/** Stores the lists of a day on which the feed has been watched for long. */
async function pollAll(feed: TestFeed, d: number): Promise<void> {
  const count = (perDay: number, slot: number): number => Math.floor((d + slot / DAILY.posts) * perDay + 1e-9)
  const archive = feed.sources.get('truth.archive') as Source
  for (let slot = 0; slot < DAILY.posts; slot += 1) {
    const n = d * DAILY.posts + slot
    feed.time = timeOf(n, DAILY.posts) + 30_000
    await feed.poll('truth.mirror', bodies.mirror(n))
    for (const [source, perDay, body] of [
      ['wh.news', DAILY.releases, bodies.releases],
      ['state.press', DAILY.press, bodies.press],
      ['fr.docs', DAILY.documents, bodies.register],
    ] as const)
      if (slot === 0 || count(perDay, slot) > count(perDay, slot - 1))
        await feed.poll(source, body(count(perDay, slot)))
    const issue = count(DAILY.inspections, slot)
    if (slot === 0 || issue > count(DAILY.inspections, slot - 1))
      await feed.poll('fr.pi', bodies.inspection(count(DAILY.documents, slot), issue, feed.time - 1000))
  }
  const rows = numbers((d + 1) * DAILY.posts - 1, 200).map((n) => row(post(n)))
  await feed.writeListing({ source: archive, at: feed.time, url: archive.url, status: 200, headers: {}, body: list(rows) }) // prettier-ignore
}

const openFeed = (db: OpenDatabase): Promise<TestFeed> => openTestFeed({ time: START, db })
const DAYS = 10
const enabled = readSources().filter(({ enabled }) => enabled)

export const POTUS_SUBJECTS: readonly Subject[] = [
  {
    name: 'POTUS items, with what their sources sent',
    plugin: 'potus',
    tables: migrations,
    rows: DAYS * EVENTS_A_DAY,
    held: 365 * EVENTS_A_DAY,
    per: 'year',
    async prepare(db) {
      await pollAll(await openFeed(db), -1)
    },
    async write(db, rows) {
      const feed = await openFeed(db)
      for (let d = 0; d < rows / EVENTS_A_DAY; d += 1) await pollAll(feed, d)
    },
  },
  {
    name: 'POTUS items of the first day',
    plugin: 'potus',
    tables: migrations,
    rows: 2025,
    held: FIRST_DAY.events,
    per: 'gateway',
    async write(db, rows) {
      const feed = await openFeed(db)
      const part = rows / (FIRST_DAY.posts + FIRST_DAY.releases + FIRST_DAY.documents)
      const poll = (id: string, body: Buffer) => {
        const source = feed.sources.get(id) as Source
        return { source, at: feed.time, url: source.url, status: 200, headers: {}, body }
      }
      await feed.writeListing(poll('truth.archive', list(numbers(-1, part * FIRST_DAY.posts).map((n) => row(post(n))))))
      for (const [id, count, size, body] of [
        ['wh.news', FIRST_DAY.releases, 30, (of: readonly number[]) => rssOf(of.map(release))],
        ['fr.docs', FIRST_DAY.documents, 75, (of: readonly number[]) => found(of.map((n) => document(n)))],
      ] as const)
        for (let n = 0; n < Math.round(part * count); n += size) {
          const page = poll(id, Buffer.from(body(numbers(-1 - n, Math.min(size, Math.round(part * count) - n)))))
          const timing = { now: feed.time, ingest: 'backfill', isPast: true } as const
          const { items } = await parseBody({ ...page.source, minItems: 0 }, page.body, feed.time)
          await feed.add(page, items, { timing })
        }
    },
  },
  {
    name: 'POTUS polls that found nothing',
    plugin: 'potus',
    tables: migrations,
    rows: 2000,
    held: Math.round(LOG_DAYS * enabled.reduce((sum, { pollSeconds }) => sum + 86_400 / pollSeconds, 0)),
    per: 'gateway, kept 8 days',
    async write(db, rows) {
      const feed = await openFeed(db)
      for (let n = 0; n < rows; n += 1) {
        feed.time += 60_000
        const { id } = enabled[n % enabled.length] as Source
        const sent = new Date(feed.time).toUTCString()
        const headers = { etag: `"${postId(feed.time)}-gzip"`, 'last-modified': sent, date: sent, age: '0' }
        await feed.poll(id, null, { status: 304, headers })
      }
    },
  },
]
