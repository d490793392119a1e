/** Wires what an operator sees: metrics, the funnel, reconciliation with the chain, and the console over all of it. */
import { createAccess } from './http/operator-session.ts'
import { type Action, type Screen, textField } from './accounting/console/screens.ts'
import { type Console, createConsole } from './http/operator-console.ts'
import { createBooks } from './accounting/console/books.ts'
import { dryRun } from './accounting/console/catalog-check.ts'
import { openFunnel } from './accounting/console/funnel.ts'
import { createViews } from './accounting/console/views.ts'
import type { Config } from './config/config.ts'
import type { Swap } from './editions/swap.ts'
import { createBook } from './accounting/ledger.ts'
import { createMetrics, type Metrics } from './observe/metrics.ts'
import { recipientsOf } from './config/pay-to.ts'
import type { Journal } from './payments/journal/journal.ts'
import type { Prices } from './payments/price-history.ts'
import type { Knex, Logger } from './plugin/plugin.ts'
import { createAlarms } from './accounting/alarms.ts'
import { createTell, type Tell } from './accounting/alerts.ts'
import { comparisonOf } from './accounting/reconciliation/open.ts'
import { shown, together } from './accounting/reconciliation/reconciliation.ts'
import { openRows } from './accounting/reconciliation/rows.ts'
import { createWatcher, type Watcher } from './accounting/reconciliation/watcher.ts'
import type { Revocations } from './tokens/revocations.ts'
import type { Road } from './road.ts'
import type { Lease } from './stores/lease.ts'
import { createHeaders } from './http/headers.ts'
import type { Render } from './http/render.ts'

export interface OversightParts {
  readonly config: Config
  readonly road: Road
  readonly journal: Journal
  readonly db: Knex
  readonly lease: Lease
  readonly prices: Prices
  readonly revocations: Revocations
  readonly swap: () => Swap
  readonly render: Render
  readonly log: Logger
  readonly now: () => Date
}

export interface Oversight {
  readonly metrics: Metrics
  /** Null where no OPERATOR_TOKEN is configured. */
  readonly console: Console | null
  readonly watcher: Watcher | null
  start(): void
  stop(): Promise<void>
}

const COMPARE_SECONDS = 60
const LOOK_SECONDS = 30
const ID = /^[\w-]{1,128}$/

export async function createOversight(parts: OversightParts): Promise<Oversight> {
  const { config, road, journal, db, lease, prices, revocations, swap, render, log, now } = parts
  const { operatorToken, baseUrl, ownWallets } = config
  const metrics = createMetrics({ journal, edition: () => swap().current })
  const funnel = await openFunnel(db, log, now)
  metrics.onStep((step) => funnel.count(step))
  const tell = createTell({ url: config.alertWebhookUrl, service: config.baseUrl, log, now })
  const watcher = await openWatcher(parts, metrics, tell)
  const alarms = createAlarms({
    journal,
    settlerHealth: () => road.settler.health(),
    products: () => swap().current.status(),
    lease,
    tell,
    onLook: metrics.alarmed,
    log,
    now,
  })
  metrics.onSettled(alarms.observe)
  const views = createViews({
    journal,
    funnel,
    metrics,
    prices,
    revoked: revocations.ids,
    mistakes: () => swap().mistakes,
    watcher,
    alarms: alarms.raised,
    settlerHealth: () => road.settler.health(),
    networks: recipientsOf(road).map(({ network }) => network),
    own: ownWallets,
    now,
  })
  const books = createBooks(createBook({ journal, own: ownWallets }), now)
  const catalog: Screen = { view: 'catalog', label: 'Catalog', data: views.catalogState }
  const screens: Record<string, Screen> = {
    '/operator': { view: 'overview', label: 'Money', data: views.overview },
    '/operator/ledger': { view: 'ledger', label: 'Ledger', data: (_edition, query) => books.ledger(query) },
    '/operator/products': { view: 'products', label: 'Products', data: views.products },
    '/operator/subscriptions': { view: 'subscriptions', label: 'Subscriptions', data: views.subscriptions },
    '/operator/reconciliation': { view: 'reconciliation', label: 'Reconciliation', data: views.reconciliation },
    '/operator/prices': { view: 'prices', label: 'Prices', data: views.priceChanges },
    '/operator/catalog': catalog,
  }
  const actions: Record<string, Action> = {
    '/operator/ledger/repaid': { back: '/operator/ledger', run: books.repaid },
    '/operator/subscriptions/revoke': {
      back: '/operator/subscriptions',
      async run(fields) {
        const id = textField(fields, 'id', ID)
        await revocations.revoke(id, 'by the operator')
        log.info({ subscription: id }, 'a token was revoked')
        return { revoked: id }
      },
    },
    '/operator/reconciliation/run': {
      back: '/operator/reconciliation',
      async run() {
        const comparison = await watcher?.run()
        return {
          available: watcher !== null,
          comparison: comparison ?? null,
          rows: (await watcher?.rows(100))?.map(shown) ?? [],
        }
      },
    },
    '/operator/catalog/check': {
      screen: catalog,
      run: async (_fields, edition) => ({ ...(await views.catalogState(edition)), check: await dryRun(config) }),
    },
  }
  const access = operatorToken === null ? null : createAccess(operatorToken, baseUrl, now)
  const headers = createHeaders(baseUrl)
  const downloads = { '/operator/ledger/export': books.file }
  const shared = { screens, downloads, actions, metrics, headers, render, baseUrl, log }
  return {
    metrics,
    console: access && createConsole({ access, ...shared }),
    watcher,
    start() {
      funnel.start()
      watcher?.start(COMPARE_SECONDS)
      alarms.start(LOOK_SECONDS)
    },
    async stop() {
      await watcher?.stop()
      await alarms.stop()
      await funnel.stop()
    },
  }
}

/** Null where there is no chain to read. */
async function openWatcher(parts: OversightParts, metrics: Metrics, tell: Tell): Promise<Watcher | null> {
  const { config, road, journal, db, lease, log, now } = parts
  const rpcUrls = road.sandbox ? [road.sandbox.rpcUrl] : config.networks.map((lane) => lane.rpcUrl)
  const places = recipientsOf(road).flatMap((payee, index) => {
    const rpcUrl = rpcUrls[index] ?? null
    return rpcUrl === null ? [] : [{ ...payee, rpcUrl, isLocal: road.sandbox !== null, own: config.ownWallets }]
  })
  if (places.length === 0) return null
  const rows = await openRows(db)
  const compare = together(places.map((place) => comparisonOf({ ...place, journal, rows, tell, log, now })))
  return createWatcher({ compare, rows, lease, onCompared: ({ buckets }) => metrics.reconciled(buckets), log })
}
