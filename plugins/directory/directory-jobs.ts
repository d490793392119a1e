/** The jobs of online mode: sweep the listings, fetch the documents that origins serve about themselves, visit services. */
import type { Ask, Job, PluginContext } from 'tollgate/plugin'
import { SELF } from './directory-record.ts'
import type { Settings, SourceSettings } from './directory-settings.ts'
import type { DirectoryStore } from './directory-store.ts'
import { SourceError } from './listing.ts'
import { healthAfter, judgeVisit } from './liveness.ts'
import { textOf } from './payload-fields.ts'
import { rowOf } from '../lib/feeds/payloads.ts'
import { readCard } from './sources/agent-cards.ts'
import { readOrigin } from './sources/well-known-x402.ts'
import { sweep } from './sweep.ts'
import type { Visit, Visitor } from './visits.ts'

const RETRY_SECONDS = 1800
const ORIGIN_SECONDS = 86_400
/** Visits in one run. At most eight of them run at once. */
const VISITS = 64
const PER_HOST = 4
const ORIGINS = 32
/** A visit that would change a status is confirmed by a second one after this time. */
const CONFIRM_SECONDS = 600

/** Kinds of sources that list services of others. */
const LISTED = { bazaar: true, mcp_registry: true, erc8004: true } as const
const DOCUMENTS = { origins: '/.well-known/x402', agent_cards: '/.well-known/agent-card.json' } as const

export function createJobs(
  context: PluginContext,
  settings: Settings,
  store: DirectoryStore,
  visit: Visitor,
): readonly Job[] {
  const { log, fetch } = context
  const now = (): number => Math.ceil(context.now().getTime() / 1000)
  const enabled = settings.sources.filter((source) => source.enabled)
  const rankOf = (source: SourceSettings): number => settings.sources.indexOf(source) + 1
  const listings = enabled.filter(({ kind, url }) => url && kind in LISTED)
  const selfListed = enabled.filter(({ kind }) => kind === 'origins' || kind === 'agent_cards')

  async function isDue({ id }: SourceSettings): Promise<boolean> {
    const { last } = await store.sweeps(id, now())
    if (!last) return true
    return now() - last.known_at >= (last.error === null ? settings.sweep_hours * 3600 : RETRY_SECONDS)
  }

  async function sweepOne(source: SourceSettings, signal: AbortSignal): Promise<void> {
    if (!(await isDue(source))) return
    try {
      const outcome = await sweep(store, fetch, {
        source,
        rank: rankOf(source),
        pauseMs: settings.pause_ms,
        signal,
        now,
        visit,
      })
      await store.note(source.id, now(), { ...outcome, error: null })
    } catch (error) {
      if (signal.aborted) throw error
      log.warn({ source: source.id, err: error }, 'could not read a source')
      const told = error instanceof SourceError ? error.message : 'the source could not be read'
      await store.note(source.id, now(), { rows: 0, dropped: {}, error: told })
    }
  }

  /** Reads the documents that an origin serves about itself, if it has any. */
  async function visitOrigin(origin: string, signal: AbortSignal): Promise<void> {
    await store.postponeOrigin(origin, now() + ORIGIN_SECONDS)
    for (const source of selfListed) {
      const kind = source.kind as keyof typeof DOCUMENTS
      const told = await visit(origin + DOCUMENTS[kind], 'GET', signal)
      const payload = jsonOf(told)
      const page = kind === 'origins' ? readOrigin(payload, origin) : readCard(payload, new URL(origin).hostname)
      if (!page) continue
      const at = now()
      const rank = rankOf(source)
      await store.savePage({ source: source.id, rank, listings: page.listings, sweep: at, at, visitAt: at })
    }
  }

  /** Visits with GET, and with POST if GET is not allowed. */
  async function visitOne(
    { id, body, health }: Awaited<ReturnType<DirectoryStore['due']>>[number],
    signal: AbortSignal,
  ) {
    let seen = await visit(body.url!, 'GET', signal)
    if (seen.failure === null && (seen.status === 404 || seen.status === 405))
      seen = await visit(body.url!, 'POST', signal)
    const at = now()
    const finding = judgeVisit(seen, body.kind)
    const next = healthAfter(health, seen, finding, at)
    const unsure = next.status !== finding.status && finding.status !== 'unknown'
    const isGood = finding.status === 'alive' || finding.status === 'auth_gated'
    const wait = unsure ? CONFIRM_SECONDS : settings.visit_hours * 3600
    await store.visited([{ id, health: next, isGood, next: at + wait }], at)
  }

  return [
    {
      name: 'sweep',
      everySeconds: 300,
      async run({ signal }) {
        for (const source of listings) await sweepOne(source, signal)
        await store.forget(now() - settings.keep_hours * 3600)
      },
    },
    {
      name: 'origins',
      everySeconds: 300,
      async run({ signal }) {
        await store.addOrigins(
          selfListed.flatMap(({ origins = [] }) => origins),
          now(),
        )
        const due = await store.origins(now(), ORIGINS)
        await Promise.all(due.map((origin) => visitOrigin(origin, signal)))
      },
    },
    {
      name: 'visit',
      everySeconds: 60,
      async run({ signal }) {
        if (settings.visit_hours === 0) return
        const due = await store.due(now(), VISITS, PER_HOST)
        await Promise.all(due.map((entry) => visitOne(entry, signal)))
      },
    },
  ]
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
