/** The methodology page of the feed. */
import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'
import { GAZETTEER_SOURCES, GAZETTEER_VERSION } from './entities/gazetteer.ts'
import { SOURCES_VERSION } from './sources/source.ts'
import { LEXICON_VERSION } from './entities/topics.ts'

/** `npm run lab -- potus --write` writes this file. */
const measured = JSON.parse(readFileSync(new URL('data/potus-measurements.json', import.meta.url), 'utf8')) as Pick<
  Required<Method>,
  'claims' | 'tables'
>

const paragraphs = [
  'Each source is polled at its own pace, with cache validators and one request per host at a time. A body that is not the feed (a web page with status 200, half a file, a date in the future) is quarantined: /v1/potus/feeds shows it and nothing is published. A body that differs only in its build date counts as unchanged.',
  'Live pages, windows, entities and single events say what was watched: the part of the time of all sources in which they were polled without a failure (coverage), the last successful poll, and the sources that are late, failing or degraded, which may have news that the answer lacks. A feed that always has items and lists none has failed; one with entries that cannot be read is degraded. A range without events is sold only if nearly all of it was watched (by default, a coverage of 0.9), and says so.',
  'Every record has four times: when it happened, when the source says it was published, when it was first fetched, and when it could be served. Windows, delays and cursors use the last one, so a late or back-dated item does not rewrite history. Everything that may change later (text, status, cluster, counts) is stored with the time at which it became known, and an answer as of a moment contains nothing newer in any field.',
  'A new text under a known key is a revision; a text that was seen before is not. A text of more than 400 characters that shrinks below a fifth is held back until two more polls agree. An item that is newer than the oldest of its feed and missing from three successful polls is retracted; its last text is kept. Each record contains the hash of the previous record of its source.',
  'What a source published before it was first fetched is back-filled: White House pages by number, the Federal Register by date, posts from an archive. Such a record says so (origin), has the time of publication as its time of availability, and has no latency. GET /v1/potus shows for free how far this has come, and how long after publication the live items of each source could be served: percentiles over 90 days.',
  'Near duplicates share a cluster: a post or a numbered document seen in two places; a White House page and the Federal Register’s document of the same title signed within three days (or filed, where the list does not say when it was signed); texts whose sets of three-word shingles overlap by four fifths within a week.',
  'Names come first from a gazetteer (case sensitive, longest name first), then from patterns that say what a name is (a county, a university, a committee), then from a grammar, which counts if the name begins with a given name. A name that is part of another one (Palm Beach County, the USS George Washington) is not counted. Ticker symbols are never matched by pattern. Topics come from a lexicon, and assets from rules over topics and entities. All three are data files with a version.',
]

const formulas = [
  {
    name: 'Relevance',
    formula: '0.30 source + 0.35 topic + 0.15 kind + 0.10 novelty + 0.10 corroboration - penalties, between 0 and 1',
  },
  { name: 'Penalties', formula: '0.30 ceremonial; 0.20 link or media without text; 0.05 dated to the day only' },
  { name: 'Near duplicate', formula: '|A ∩ B| / |A ∪ B| ≥ 0.8 over three-word shingles', source: 'Broder (1997)' },
  { name: 'Time of a post', formula: 'id >> 16, in milliseconds since 1970', source: 'Mastodon snowflake ids' },
]

/** common.json#/$defs/Method */
export function feedMethod(): Method {
  return {
    model: `potus/1, sources ${SOURCES_VERSION}, gazetteer ${GAZETTEER_VERSION}, lexicon ${LEXICON_VERSION}`,
    paragraphs,
    formulas,
    ...measured,
    limits: [
      'Relevance says how much an item concerns markets, never a direction. Its weights are not fitted to prices: two public studies disagree on whether such posts move markets at all.',
      'One person labelled five sets of texts, and the rules were refined after each. On the first try, the first four sets gave a precision of 0.90 to 0.94, and the last one 0.983 with a recall of 0.901.',
      'The delay of the post mirror and of the White House feed can only be measured online; latencies in GET /v1/potus shows it.',
      'Unverified sources were never tested with a recorded payload. Of these only the Federal Reserve and the State Department are enabled.',
      'A back-filled record has the text that its source shows now. Whether it was edited or deleted before is unknown.',
      'Posts belong to their author. Name the source that a record names.',
    ],
    sources: [
      ...GAZETTEER_SOURCES,
      'Broder, On the resemblance and containment of documents, Proc. Compression and Complexity of Sequences (1997)',
      'Graham, Harrington and Chorazy (2026), and Friederichs (2026): replication packages on posts and markets',
    ],
  }
}
