/** Calendars: the President's, which a third party compiles, and the Federal Reserve's. */
import { once } from 'tollgate/plugin'
import { oneLine } from './html-text.ts'
import { FeedError, type Item } from './source.ts'
import { jsonValue, objectsOf, timeOf } from './feed-body.ts'

/** Entries of the President's calendar. Clock times are Washington's, to the minute. */
export function parseCalendar(body: Buffer): (Item | null)[] {
  const rows = jsonValue(body)
  if (!Array.isArray(rows)) throw new FeedError('wrong_shape', 'The body is not a list of entries.')
  return objectsOf(rows).map((row): Item | null => {
    const [day, time, details, place] = ['date', 'time', 'details', 'location'].map((name) =>
      typeof row[name] === 'string' ? row[name].trim() : '',
    ) as [string, string, string, string]
    const shown = timeOf(time ? `${day}T${time}Z` : day)
    if (shown === null) return null
    const at = time ? inWashington(shown) : shown
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

/**
 * Entries of the Federal Reserve's calendar: a month, one or more days of which the last one counts, and a clock time in
 * Washington. Rows without a day are skipped. The file begins with a byte-order mark.
 */
export function parseFedCalendar(body: Buffer): Item[] {
  const events = (jsonValue(body) as { events?: unknown } | null)?.events
  if (!Array.isArray(events)) throw new FeedError('wrong_shape', 'The body has no list of events.')
  return objectsOf(events).flatMap((row): Item[] => {
    const word = (name: string): string => (typeof row[name] === 'string' ? row[name].trim() : '')
    const [year, month] = word('month').split('-').map(Number)
    const day = Number(word('days').match(/\d+/g)?.at(-1))
    if (!year || !month || !day) return []
    const clock = word('time').match(/^(\d{1,2}):(\d{2})\s*([ap])/i)
    const hour = clock ? (Number(clock[1]) % 12) + (clock[3]?.toLowerCase() === 'p' ? 12 : 0) : 0
    const at = clock
      ? inWashington(Date.UTC(year, month - 1, day, hour, Number(clock[2])))
      : Date.UTC(year, month - 1, day)
    const title = oneLine(word('title'))
    return [
      {
        key: [word('month'), word('days'), word('type'), title].join(' ').trim(),
        kind: 'schedule.item',
        title: title || null,
        text: [word('description'), word('location')].filter(Boolean).map(oneLine).join(' '),
        lang: 'en',
        url: word('link') || 'https://www.federalreserve.gov/newsevents/calendar.htm',
        media: [],
        occurredAt: at,
        publishedAt: at,
        precision: clock ? 'min' : 'day',
        post: null,
        signedOn: null,
        counts: null,
      },
    ]
  })
}

const wall = once(
  () => new Intl.DateTimeFormat('en-US', { timeZone: 'America/New_York', hour: 'numeric', hourCycle: 'h23' }),
)

/** The time at which clocks in Washington show what the argument shows in UTC. */
function inWashington(shown: number): number {
  const hour = new Date(shown).getUTCHours()
  const offset = [4, 5].find((hours) => Number(wall().format(shown + hours * 3_600_000)) === hour) ?? 5
  return shown + offset * 3_600_000
}
