/** What a source says, before anything is decided about it. Times are milliseconds since 1970, UTC. */

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
