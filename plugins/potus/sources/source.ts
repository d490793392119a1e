/** The sources: a data file with a version, and what an operator changes of it. */
import { readFileSync } from 'node:fs'

export interface Source {
  readonly id: string
  readonly name: string
  readonly url: string
  /** Name and version of the parser: bytes are parsed again when it changes. */
  readonly parser: string
  /** Whose words these are. Two sources of one publisher do not corroborate each other. */
  readonly publisher: string
  readonly affiliation: 'official' | 'third_party'
  /** What its word weighs: the principal and official instruments most. */
  readonly role: 'principal' | 'mirror' | 'agency'
  readonly tier: 'breaking' | 'record' | 'archive'
  readonly format: string
  readonly licence: string
  readonly attribution: string
  readonly enabled: boolean
  /** False where no payload of it was ever seen by us. */
  readonly verified: boolean
  readonly pollSeconds: number
  /** Older than this without news of any kind, it counts as late. */
  readonly lateSeconds: number
  /** Kind of its items where the parser cannot tell. */
  readonly kind: Kind
  /** Fewer items than this are a broken feed. */
  readonly minItems: number
  /** The feed holds everything recent, so what is missing was taken back. */
  readonly retracts: boolean
  readonly maxBytes: number
  readonly userAgent: string | null
  /** Query parameter that gets past a shared cache. */
  readonly cacheBuster: string | null
  /** Asks caches for a fresh copy. */
  readonly noCache: boolean
  /** Clock time that stands for a whole day, "12:00:00". */
  readonly dayStamp: string
  /** New York clock times at which news come: polled every two minutes around them, else every `pollSeconds`. */
  readonly slots: readonly string[]
  /** Polled at this pace outside New York business hours. */
  readonly nightSeconds: number
}

/** What an operator may change of a source. */
export interface SourceSettings {
  readonly enabled?: boolean
  readonly url?: string
  readonly poll_seconds?: number
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

/** All sources with the operator's changes. Throws RangeError for a change to a source that is not there. */
export function readSources(changes: Readonly<Record<string, SourceSettings>> = {}): Source[] {
  const sources = file.sources.map((entry) => sourceOf({ ...file.defaults, ...entry }, changes[String(entry['id'])]))
  const unknown = Object.keys(changes).find((id) => !sources.some((source) => source.id === id))
  if (unknown !== undefined)
    throw new RangeError(`no source ${unknown}; there are ${sources.map(({ id }) => id).join(', ')}`)
  return sources
}

function sourceOf(entry: Entry, changes: SourceSettings = {}): Source {
  const camel = Object.entries(entry).map(([name, value]) => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ])
  const source = Object.fromEntries(camel) as Source
  return {
    ...source,
    enabled: changes.enabled ?? source.enabled,
    url: changes.url ?? source.url,
    pollSeconds: changes.poll_seconds ?? source.pollSeconds,
  }
}

/* --- What a source says, before anything is decided about it. Times are milliseconds since 1970, UTC. --- */

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

/** Replies, reposts and likes: kept aside, never a revision. */
export interface Counts {
  readonly replies: number
  readonly reblogs: number
  readonly favourites: number
}

export interface Item {
  /** The source's own name of it; always text, also where it looks like a number. */
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
  /** Id of the post on its platform, or number of the paper: two records with one id are one. */
  readonly post: string | null
  /** Day of signing, where an official paper has one. */
  readonly signedOn: string | null
  readonly counts: Counts | null
}

/** A body that is not what its source should send. Nothing of it is published. */
export class FeedError extends Error {
  /** One word for the poll log. */
  readonly reason: string
  constructor(reason: string, message: string) {
    super(message)
    this.name = 'FeedError'
    this.reason = reason
  }
}
