/** The President's calendar as a third party compiles it: facts of each entry, no prose. */
import { oneLine } from '../ingest/text.ts'
import { FeedError, type Item } from '../item.ts'
import { jsonValue, moment } from './body.ts'

type Row = Readonly<Record<string, unknown>>

/** Entries with a day; those with a clock time count to the minute. */
export function parseCalendar(body: Buffer): Item[] {
  const rows = jsonValue(body)
  if (!Array.isArray(rows)) throw new FeedError('wrong_shape', 'The body is not a list of entries.')
  return (rows as Row[]).map((row) => {
    const [day, time, details, place] = ['date', 'time', 'details', 'location'].map((name) =>
      typeof row[name] === 'string' ? row[name].trim() : '',
    ) as [string, string, string, string]
    const at = moment(time ? `${day}T${time}Z` : day, `the entry of ${day}`)
    return {
      key: `${day} ${time} ${details}`.trim(),
      kind: 'schedule.item',
      title: oneLine(details) || null,
      text: place,
      lang: 'en',
      url: typeof row['url'] === 'string' ? row['url'] : '',
      media: [],
      occurredAt: at,
      publishedAt: at,
      precision: time ? 'min' : 'day',
      post: null,
      signedOn: null,
      counts: null,
    }
  })
}
