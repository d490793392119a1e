/** The sources of the feed, which are a data file with a version, and the items that they publish. */
import { readFileSync } from 'node:fs'

export interface Source {
  readonly id: string
  readonly name: string
  readonly url: string
  /** Name and version of the parser. If the version changes, a body that was already parsed is parsed again. */
  readonly parser: string
  /** Who wrote the items. Two sources of one publisher do not corroborate each other. */
  readonly publisher: string
  readonly affiliation: 'official' | 'third_party'
  /** Weight of the source in the relevance score. */
  readonly role: 'principal' | 'mirror' | 'agency'
  readonly tier: 'breaking' | 'record' | 'archive'
  readonly format: string
  readonly licence: string
  readonly attribution: string
  readonly enabled: boolean
  /** False if the parser was never tried on a recorded payload of this source. */
  readonly verified: boolean
  readonly pollSeconds: number
  /** A source without a successful poll for this long is late. */
  readonly lateSeconds: number
  /** Kind of its items if the parser cannot tell. */
  readonly kind: Kind
  /**
   * A body with fewer items is quarantined: a feed that always has some has failed if it lists none. 0 for a source that may
   * have nothing to list, such as documents that wait for their publication.
   */
  readonly minItems: number
  /** True if the feed lists everything recent, so that a missing item was taken back. */
  readonly retracts: boolean
  readonly maxBytes: number
  /** True if the body is a long list, which is read in pieces and not kept. */
  readonly streamed: boolean
  /** How older items are fetched once; null if the source has none. */
  readonly history: History | null
  readonly userAgent: string | null
  /** Query parameter that is varied to bypass a shared cache. */
  readonly cacheBuster: string | null
  /** Asks caches for a fresh copy. */
  readonly noCache: boolean
  /** Clock time that the source uses when it only knows the day, such as "12:00:00". */
  readonly dayStamp: string
  /** New York clock times at which the source usually publishes. It is polled every two minutes around them. */
  readonly slots: readonly string[]
  /** Seconds between two polls outside New York business hours; 0 for `pollSeconds`. */
  readonly nightSeconds: number
}

/**
 * How the older items of a source are fetched. `pages`: the page numbers of a WordPress feed, until one is missing. `days`:
 * a search by date of publication, so many days at a time, back to the day `from`.
 */
export type History =
  | { readonly by: 'pages'; readonly pauseSeconds: number }
  | {
      readonly by: 'days'
      readonly from: string
      readonly days: number
      readonly perPage: number
      readonly pauseSeconds: number
    }

/** What an operator may change of a source. */
export interface SourceSettings {
  readonly enabled?: boolean
  readonly url?: string
  readonly poll_seconds?: number
  /** False if older items are not to be fetched. */
  readonly history?: boolean
}

interface Entry {
  readonly [field: string]: unknown
}

const file = JSON.parse(readFileSync(new URL('../data/sources.json', import.meta.url), 'utf8')) as {
  readonly version: string
  readonly defaults: Entry
  readonly sources: readonly Entry[]
}

export const SOURCES_VERSION = file.version

/** All sources with the operator's changes. Throws RangeError for a change to an unknown source. */
export function readSources(changes: Readonly<Record<string, SourceSettings>> = {}): Source[] {
  const sources = file.sources.map((entry) => sourceOf({ ...file.defaults, ...entry }, changes[String(entry['id'])]))
  const unknown = Object.keys(changes).find((id) => !sources.some((source) => source.id === id))
  if (unknown !== undefined)
    throw new RangeError(`there is no source ${unknown}; the sources are ${sources.map(({ id }) => id).join(', ')}`)
  return sources
}

function sourceOf(entry: Entry, changes: SourceSettings = {}): Source {
  const source = camelCase(entry) as unknown as Source
  return {
    ...source,
    history: changes.history === false ? null : source.history,
    enabled: changes.enabled ?? source.enabled,
    url: changes.url ?? source.url,
    pollSeconds: changes.poll_seconds ?? source.pollSeconds,
  }
}

/** The entry with the names of our code, those of objects in it too. */
function camelCase(entry: Entry): Entry {
  const isEntry = (value: unknown): value is Entry =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
  const camel = Object.entries(entry).map(([name, value]) => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    isEntry(value) ? camelCase(value) : value,
  ])
  return Object.fromEntries(camel) as Entry
}

export const KINDS = [
  'action.executive_order',
  'action.proclamation',
  'action.memorandum',
  'action.nomination',
  'action.other',
  'statement',
  'fact_sheet',
  'release',
  'bill_signed',
  'social.post',
  'social.repost',
  'social.link',
  'social.media',
  'fr.public_inspection',
  'fr.published',
  'agency.press',
  'fed.press',
  'schedule.item',
] as const

export type Kind = (typeof KINDS)[number]

export type Precision = 'ms' | 's' | 'min' | 'day'

export interface Media {
  readonly type: 'image' | 'video' | 'other'
  readonly url: string
}

/** Replies, reposts and likes. They are stored apart and never cause a revision. */
export interface Counts {
  readonly replies: number
  readonly reblogs: number
  readonly favourites: number
}

/** What a source publishes, as its parser reads it. Times are milliseconds since 1970, UTC. */
export interface Item {
  /** The source's own id. Always text, even if it looks like a number. */
  readonly key: string
  readonly kind: Kind
  readonly title: string | null
  /** Plain text in NFC. */
  readonly text: string
  readonly lang: string
  readonly url: string
  readonly media: readonly Media[]
  readonly occurredAt: number | null
  readonly publishedAt: number
  readonly precision: Precision
  /** Id of the post on its platform, or number of the document. Two records with one id are the same news. */
  readonly post: string | null
  /** Day on which an official document was signed. */
  readonly signedOn: string | null
  readonly counts: Counts | null
}

/** A body that is not what its source should send. It is quarantined, and nothing of it is published. */
export class FeedError extends Error {
  /** Short code for the log of polls, such as `not_a_feed`. */
  readonly reason: string
  constructor(reason: string, message: string) {
    super(message)
    this.name = 'FeedError'
    this.reason = reason
  }
}
