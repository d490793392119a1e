/** The jobs of online mode: sweep the listings, fetch the documents that origins serve about themselves, visit services. */
import type { Ask, Job, PluginContext } from 'tollgate/plugin'
import { SELF } from './directory-record.ts'
import type { Settings, SourceKind, SourceSettings } from './directory-settings.ts'
import type { DirectoryStore } from './directory-store.ts'
import { SourceError } from './listing.ts'
import { healthAfter, judgeVisit } from './liveness.ts'
import { textOf } from './listing-fields.ts'
import { rowOf } from '../lib/feeds/payloads.ts'
import { readCard } from './sources/agent-cards.ts'
import { readOrigin } from './sources/well-known-x402.ts'
import { sweep } from './sweep.ts'
import type { Visit, Visitor } from './visits.ts'

/** A sweep that failed is repeated after this time. */
const RETRY_SECONDS = 1800
/** Time between two visits to the documents of an origin. */
const ORIGIN_SECONDS = 86_400
/** Visits in one run; the visitor decides how many of them run at once. */
const VISITS = 64
/** Visits to one host in one run. */
const PER_HOST = 4
/** Origins visited in one run. */
const ORIGINS = 32
/** A visit that would change a status is confirmed by a second one after this time. */
const CONFIRM_SECONDS = 600

/** Kinds of sources that list services of others. */
const LISTINGS: readonly SourceKind[] = ['bazaar', 'mcp_registry', 'erc8004']
const DOCUMENTS = { origins: '/.well-known/x402', agent_cards: '/.well-known/agent-card.json' } as const

export interface JobParts {
  readonly context: Pick<PluginContext, 'fetch' | 'log' | 'now'>
  readonly settings: Settings
  readonly store: DirectoryStore
  readonly visit: Visitor
}

/** The jobs of online mode: sweep, origins and visit. `parts` holds what they work with. */
export function createJobs(parts: JobParts): readonly Job[] {
  const { settings, store } = parts
  const enabled = settings.sources.filter((source) => source.enabled)
  const listings = enabled.filter(({ kind, url }) => url && LISTINGS.includes(kind))
  const selfListed = enabled.filter(({ kind }) => kind === 'origins' || kind === 'agent_cards')
  return [
    {
      name: 'sweep',
      everySeconds: 300,
      async run({ signal }) {
        for (const source of listings) await sweepSource(parts, source, signal)
        await store.forget(nowSeconds(parts) - settings.keep_hours * 3600)
      },
    },
    {
      name: 'origins',
      everySeconds: 300,
      async run({ signal }) {
        await store.addOrigins(
          selfListed.flatMap(({ origins = [] }) => origins),
          nowSeconds(parts),
        )
        const due = await store.origins(nowSeconds(parts), ORIGINS)
        await Promise.all(due.map((origin) => visitOrigin(parts, origin, selfListed, signal)))
      },
    },
    {
      name: 'visit',
      everySeconds: 60,
      async run({ signal }) {
        if (settings.visit_hours === 0) return
        const due = await store.due(nowSeconds(parts), VISITS, PER_HOST)
        await Promise.all(due.map((entry) => visitService(parts, entry, signal)))
      },
    },
  ]
}

const nowSeconds = ({ context }: Pick<JobParts, 'context'>): number => Math.ceil(context.now().getTime() / 1000)

/** Rank of a source: the order of the settings, from 1. */
const rankOf = ({ settings }: JobParts, source: SourceSettings): number => settings.sources.indexOf(source) + 1

/** True if the source was never swept, or long enough ago. A sweep that failed is repeated sooner. */
async function isDue(parts: JobParts, { id }: SourceSettings): Promise<boolean> {
  const { store, settings } = parts
  const { last } = await store.sweeps(id, nowSeconds(parts))
  if (!last) return true
  return nowSeconds(parts) - last.known_at >= (last.error === null ? settings.sweep_hours * 3600 : RETRY_SECONDS)
}

async function sweepSource(parts: JobParts, source: SourceSettings, signal: AbortSignal): Promise<void> {
  const { context, settings, store, visit } = parts
  const now = (): number => nowSeconds(parts)
  if (!(await isDue(parts, source))) return
  try {
    const outcome = await sweep(store, context.fetch, {
      source,
      rank: rankOf(parts, source),
      pauseMs: settings.pause_ms,
      signal,
      now,
      visit,
    })
    await store.note(source.id, now(), { ...outcome, error: null })
  } catch (error) {
    if (signal.aborted) throw error
    context.log.warn({ source: source.id, err: error }, 'could not read a source')
    const reason = error instanceof SourceError ? error.message : 'the source could not be read'
    await store.note(source.id, now(), { rows: 0, dropped: {}, error: reason })
  }
}

/** Reads the documents that an origin serves about itself, if it has any. */
async function visitOrigin(
  parts: JobParts,
  origin: string,
  sources: readonly SourceSettings[],
  signal: AbortSignal,
): Promise<void> {
  const { store, visit } = parts
  await store.postponeOrigin(origin, nowSeconds(parts) + ORIGIN_SECONDS)
  for (const source of sources) {
    const kind = source.kind as keyof typeof DOCUMENTS
    const payload = jsonOf(await visit(origin + DOCUMENTS[kind], 'GET', signal))
    const page = kind === 'origins' ? readOrigin(payload, origin) : readCard(payload, new URL(origin).hostname)
    if (!page) continue
    const at = nowSeconds(parts)
    const rank = rankOf(parts, source)
    await store.savePage({ source: source.id, rank, listings: page.listings, sweep: at, at, visitAt: at })
  }
}

/** Visits a service with GET, and with POST if GET is not allowed. */
async function visitService(
  parts: JobParts,
  { id, body, health }: Awaited<ReturnType<DirectoryStore['due']>>[number],
  signal: AbortSignal,
): Promise<void> {
  const { settings, store, visit } = parts
  let seen = await visit(body.url!, 'GET', signal)
  if (seen.failure === null && (seen.status === 404 || seen.status === 405))
    seen = await visit(body.url!, 'POST', signal)
  const at = nowSeconds(parts)
  const finding = judgeVisit(seen, body.kind)
  const next = healthAfter(health, seen, finding, at)
  const isUnconfirmed = next.status !== finding.status && finding.status !== 'unknown'
  const isGood = finding.status === 'alive' || finding.status === 'auth_gated'
  const wait = isUnconfirmed ? CONFIRM_SECONDS : settings.visit_hours * 3600
  await store.visited([{ id, health: next, isGood, next: at + wait }], at)
}

function jsonOf(visit: Visit): unknown {
  if (visit.failure !== null || visit.status !== 200) return null
  try {
    return rowOf(JSON.parse(visit.body))
  } catch {
    return null
  }
}

/** Adds our own services from our discovery document, without a visit. */
export async function listOurselves(ask: Ask, store: DirectoryStore, at: number): Promise<void> {
  const document = await ask('getDiscovery', { params: {}, query: {}, body: undefined })
  const base = textOf(rowOf(document)['base_url'])
  const page = base === null ? null : readOrigin(document, new URL(base).origin, true)
  if (!page) return
  await store.savePage({ source: SELF, rank: 0, listings: page.listings, sweep: at, at, visitAt: null })
  await store.conclude(SELF, at, at)
}
