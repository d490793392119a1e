/** The free index of the family: what is sold, how fresh, from which sources. Its figures are a day old. */
import type { Catalog, Knex } from 'tollgate/plugin'
import { GAZETTEER_SOURCES, GAZETTEER_VERSION } from '../entities/facts.ts'
import { KINDS } from '../item.ts'
import { DAY, isoOrNull } from '../moment.ts'
import type { Reader } from '../store/read.ts'
import { SOURCES_VERSION, type Source } from '../sources/source.ts'
import { LEXICON_VERSION, TOPICS } from '../topics.ts'

export async function familyAt(
  db: Knex,
  reader: Reader,
  catalog: Catalog,
  product: string,
  sources: readonly Source[],
  asOf: number,
) {
  const operations = [...catalog.operations.values()].filter(
    (operation) => operation.product === product && !operation.internal && operation.price !== null,
  )
  const total = await reader.count(0, asOf)
  const kinds = (await db('potus_events as e')
    .join('potus_versions as v', 'v.seq', 'e.seq')
    .where('v.version', 1)
    .whereBetween('e.available_at', [asOf - 30 * DAY, asOf])
    .groupBy('v.kind')
    .select('v.kind as kind')
    .count('* as n')) as { kind: string; n: number }[]
  return {
    routes: operations.map(({ displayRoute, summary, priceText, maxFreshnessSeconds }) => ({
      route: displayRoute,
      summary,
      price_usd: Number(priceText),
      max_freshness_seconds: maxFreshnessSeconds,
    })),
    plans: catalog.plans.path,
    sources: sources.map(({ id, name, enabled, verified, affiliation }) => ({
      id,
      name,
      enabled,
      verified,
      affiliation,
    })),
    kinds: [...KINDS],
    topics: [...TOPICS],
    versions: { sources: SOURCES_VERSION, gazetteer: GAZETTEER_VERSION, lexicon: LEXICON_VERSION },
    gazetteer_sources: [...GAZETTEER_SOURCES],
    counts: {
      events: total,
      events_30d: kinds.reduce((sum, { n }) => sum + n, 0),
      by_kind_30d: Object.fromEntries(
        kinds.map(({ kind, n }) => [kind, n] as const).sort(([a], [b]) => (a < b ? -1 : 1)),
      ),
    },
    newest_available_at: isoOrNull(await reader.newest(asOf)),
  }
}
