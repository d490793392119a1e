/** The feed on a database of its own: the real writer and the real handlers, called as the gateway calls them. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  type Access,
  type Call,
  type Handler,
  JsonReply,
  type Operation,
  Reply,
  type ServerEvent,
} from 'tollgate/plugin'
import { createCatalog } from '../../../gateway/catalog/resolve.ts'
import { readDocuments } from '../../../gateway/catalog/documents.ts'
import { readSchemas } from '../../../gateway/catalog/schemas.ts'
import { createValidators, type Validators } from '../../../gateway/catalog/operation-validators.ts'
import { openDatabase, type OpenDatabase } from '../../../gateway/stores/database.ts'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { createStoredFigures } from '../../../plugins/potus/answers/feed-figures.ts'
import { createRecentFigures } from '../../../plugins/potus/answers/recent-figures.ts'
import { createHandlers } from '../../../plugins/potus/answers/operations.ts'
import { EMPTY_COVERAGE } from '../../../plugins/potus/answers/watched-feed.ts'
import { createWriter, type Writer } from '../../../plugins/potus/ingest/event-writer.ts'
import type { WriteResult } from '../../../plugins/potus/ingest/new-events.ts'
import { readSources, type Source, type SourceSettings } from '../../../plugins/potus/sources/source.ts'
import { createReader } from '../../../plugins/potus/store/event-reader.ts'
import { migrations } from '../../../plugins/potus/store/tables.ts'

export const root = resolve(import.meta.dirname, '../../..')
/** Recorded payloads, which are not part of the repository. */
export const SHARED = resolve(root, '../shared/data/potus')

export const fixture = (name: string): Buffer => readFileSync(join(root, 'test/fixtures/potus', name))

const documents = await readDocuments(join(root, 'catalog'))
const { schemas } = await readSchemas(join(root, 'schemas'))
export const { catalog } = createCatalog(documents.documents, schemas)
const compileValidators = createValidators(schemas)
const compiled = new Map<string, Validators>()

/** The validators of an operation of the catalog, compiled once for all feeds. */
function validatorsOf(operation: Operation): Validators {
  const validators = compiled.get(operation.id) ?? compileValidators(operation)
  compiled.set(operation.id, validators)
  return validators
}

export const LIVE: Access = { kind: 'token', plan: 'live-24h', subject: '0xb2', expiresAt: new Date(8.64e15) }
export const PAID: Access = { kind: 'payment', payer: '0xb2', amount: 1n }

export interface AskOptions {
  readonly params?: object
  readonly query?: object
  /** Default: the clock, minus the delay of the operation for a payer. */
  readonly asOf?: number
  readonly access?: Access
  readonly stream?: Call['stream']
  /** Skips the check against the schema, for large answers that other tests check. */
  readonly unchecked?: boolean
}

export interface TestFeed {
  readonly db: OpenDatabase
  readonly sources: ReadonlyMap<string, Source>
  /** Milliseconds since the epoch; tests set it. */
  time: number
  /** Writes a body as if it was fetched from the source now. */
  poll(
    source: string,
    body: Buffer | string | null,
    fields?: Partial<Parameters<TestFeed['write']>[0]>,
  ): Promise<WriteResult>
  readonly write: Writer['write']
  readonly add: Writer['add']
  readonly writeListing: Writer['writeListing']
  /** Calls an operation and checks the answer against its schema. */
  ask<Answer = Record<string, never>>(operation: string, options?: AskOptions): Promise<Answer>
  /** Opens the stream of the live feed. */
  follow(query: object, access: Access): Promise<AsyncIterable<ServerEvent>>
  /** Calls an operation and returns the JSON that a caller receives. */
  askText(operation: string, options?: AskOptions): Promise<string>
  close(): Promise<void>
}

export interface TestFeedOptions {
  readonly time?: number
  readonly settings?: Readonly<Record<string, SourceSettings>>
  readonly dataMode?: 'sample' | 'replay' | 'online'
  readonly shift?: number | null
  readonly db?: OpenDatabase
  /** How long figures in memory are served before the feed looks for changes; default: it always looks. */
  readonly checkMs?: number
  /** Least coverage with which an answer without events is sold; default: that of the product. */
  readonly emptyCoverage?: number
  /** Reads all figures from the database. */
  readonly remembersNothing?: boolean
}

export async function openTestFeed({
  time = Date.UTC(2026, 4, 1),
  settings,
  dataMode = 'online',
  shift = null,
  db,
  checkMs = 0,
  emptyCoverage = EMPTY_COVERAGE,
  remembersNothing = false,
}: TestFeedOptions = {}): Promise<TestFeed> {
  const store = db ?? openDatabase({ file: ':memory:' })
  await migrate(store, 'potus', migrations)
  const list = readSources(settings)
  const sources = new Map(list.map((source) => [source.id, source]))
  const reader = createReader(store)
  const feed = { time }
  const writer = createWriter(
    store,
    () => feed.time,
    (source) => sources.get(source)?.publisher ?? source,
  )
  const recent = createRecentFigures({
    db: store,
    reader,
    sources: list,
    now: () => feed.time,
    checkMs,
  })
  const handlers = createHandlers({
    db: store,
    reader,
    figures: remembersNothing ? createStoredFigures(store) : recent,
    context: { dataMode, shift: () => shift, sources },
    sources: list,
    product: 'potus',
    emptyCoverage,
    now: () => new Date(feed.time),
    assertReady: () => {},
  }) as unknown as Record<string, Handler>

  const call = async (
    id: string,
    { params = {}, query = {}, asOf, access = PAID, stream, unchecked }: AskOptions = {},
  ): Promise<unknown> => {
    const operation = catalog.operations.get(id)
    if (!operation) throw new Error(`the catalog has no ${id}`)
    const validators = validatorsOf(operation)
    const time = asOf ?? feed.time - (access.kind === 'token' ? 0 : operation.maxFreshnessSeconds) * 1000
    const answer = await (handlers[id] as Handler)({
      id: 'test',
      operation,
      catalog,
      input: validators.input({ params: { ...params }, query: { ...query }, body: undefined }),
      access,
      client: 'test',
      ...(stream ? { stream } : {}),
      asOf: new Date(time),
      signal: new AbortController().signal,
      ask: async () => ({ count: 0 }) as never,
    })
    const violation = unchecked ? null : validators.answer(valueOf(answer))
    if (violation !== null) throw new Error(`${id} breaks its schema: ${violation}`)
    return answer
  }

  return Object.assign(feed, {
    db: store,
    sources,
    write: writer.write,
    add: writer.add,
    writeListing: writer.writeListing,
    poll(id: string, body: Buffer | string | null, fields: object = {}) {
      const source = sources.get(id) as Source
      const bytes = body === null ? null : Buffer.from(body)
      return writer.write({ source, at: feed.time, url: source.url, status: 200, headers: {}, body: bytes, ...fields })
    },
    async ask<Answer>(id: string, options?: AskOptions): Promise<Answer> {
      return valueOf(await call(id, options)) as Answer
    },
    async follow(query: object, access: Access) {
      const answer = await call('getPotusLive', { query, access, stream: { lastEventId: null }, unchecked: true })
      return (answer as Reply).source as AsyncIterable<ServerEvent>
    },
    async askText(id: string, options?: AskOptions): Promise<string> {
      const answer = await call(id, options)
      return answer instanceof JsonReply ? answer.json.toString() : JSON.stringify(valueOf(answer))
    },
    close: async () => {
      if (!db) await store.destroy()
    },
  })
}

const valueOf = (answer: unknown): unknown => (answer instanceof Reply ? answer.body : answer)

/** Settings with which only the White House and the mirror are on. */
export const TWO_SOURCES: Readonly<Record<string, SourceSettings>> = Object.fromEntries(
  readSources().map(({ id }) => [id, { enabled: id === 'wh.news' || id === 'truth.mirror' }]),
)

/** What a source already has at its first poll, which counts as backfill. */
export const OLD_RELEASE = { key: 'old', text: 'An old release.', at: Date.UTC(2026, 3, 1, 12) }

/** A feed whose clock is at 1 May 2026, 13:00. It polled the White House and the mirror once, an hour ago. */
export async function openPolledTestFeed(): Promise<TestFeed> {
  const time = Date.UTC(2026, 4, 1, 12)
  const feed = await openTestFeed({ time })
  await feed.poll('wh.news', rssOf([OLD_RELEASE]))
  const at = time - 40 * 3_600_000
  await feed.poll('truth.mirror', postsOf([{ id: postId(at), text: 'An old post.', at }]))
  feed.time += 3_600_000
  return feed
}

/** An RSS feed in the format of the White House. */
export function rssOf(
  items: readonly { key: string; title?: string; text: string; at: number; path?: string; label?: string }[],
  built = 'Fri, 02 Oct 2026 13:40:11 +0000',
): string {
  const entries = items.map(
    ({ key, title = key, text, at, path = 'releases', label }) => `<item><title>${title}</title>
<link>https://www.whitehouse.gov/${path}/2026/05/${key}/</link><pubDate>${new Date(at).toUTCString()}</pubDate>
${label ? `<category><![CDATA[${label}]]></category>` : ''}<guid isPermaLink="false">https://www.whitehouse.gov/?p=${key}</guid>
<content:encoded><![CDATA[<p>${text}</p>]]></content:encoded></item>`,
  )
  return `<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>News</title><lastBuildDate>${built}</lastBuildDate>${entries.join('')}</channel></rss>`
}

/** A feed of posts in the format of the mirror. */
export function postsOf(posts: readonly { id?: string; text: string; at: number; guid?: string }[]): string {
  const items = posts.map(
    ({
      id,
      text,
      at,
      guid,
    }) => `<item><title><![CDATA[${text || '[No Title] - Post from May 1, 2026'}]]></title><description><![CDATA[<p>${text}</p>]]></description>
<pubDate>${new Date(at).toUTCString()}</pubDate>${guid ? `<guid>${guid}</guid>` : ''}${id ? `<truth:originalUrl>https://truthsocial.com/@realDonaldTrump/${id}</truth:originalUrl><truth:originalId>${id}</truth:originalId>` : ''}</item>`,
  )
  return `<rss version="2.0" xmlns:truth="https://truthsocial.com/ns"><channel><title>Posts</title>${items.join('')}</channel></rss>`
}

/** A post id that contains a time. */
export const postId = (at: number, salt = 7): string => String((BigInt(at) << 16n) + BigInt(salt))
