/** Wires what an operator sees: metrics, the funnel, reconciliation with the chain, and the console over all of it. */
import { createAccess } from './builtin/operator/access.ts'
import { type Action, type Console, createConsole, type Screen, textField } from './builtin/operator/console.ts'
import { dryRun } from './builtin/operator/dryrun.ts'
import { openFunnel } from './builtin/operator/funnel.ts'
import { createViews } from './builtin/operator/views.ts'
import type { Config } from './config.ts'
import type { Swap } from './editions/swap.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import type { Journal } from './payments/payment.ts'
import type { Prices } from './payments/prices.ts'
import { createRpc } from './payments/settlers/rpc.ts'
import type { Knex, Logger } from './plugin.ts'
import { createAlerts } from './reconciliation/alerts.ts'
import { createComparison, shown } from './reconciliation/reconciliation.ts'
import { openRows } from './reconciliation/rows.ts'
import { createWatcher, type Watcher } from './reconciliation/watcher.ts'
import type { Revocations } from './revocations.ts'
import type { Road } from './road.ts'
import type { Lease } from './stores/lease.ts'
import { createHeaders } from './transports/headers.ts'
import type { Render } from './transports/render.ts'

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
/** Blocks of Base that are taken as settled once this deep; a local chain has no reorganisations. */
const DEPTH = 12
/** About a day of two-second blocks, read when there is no cursor yet. */
const LOOK_BACK = 43_200
const GRACE_SECONDS = 300
const ID = /^[\w-]{1,128}$/

export async function createOversight(parts: OversightParts): Promise<Oversight> {
  const { config, road, journal, db, prices, revocations, swap, render, log, now } = parts
  const { operatorToken, baseUrl, ownWallets } = config
  const metrics = createMetrics({ journal, edition: () => swap().current })
  const funnel = await openFunnel(db, log, now)
  metrics.onStep((step) => funnel.count(step))
  const watcher = await openWatcher(parts, metrics)
  const views = createViews({
    journal,
    funnel,
    metrics,
    prices,
    revoked: revocations.ids,
    mistakes: () => swap().mistakes,
    watcher,
    settlerHealth: () => road.settler.health(),
    network: road.network,
    own: ownWallets,
    now,
  })
  const catalog: Screen = { view: 'catalog', label: 'Catalog', data: views.catalogState }
  const screens: Record<string, Screen> = {
    '/operator': { view: 'overview', label: 'Money', data: views.overview },
    '/operator/products': { view: 'products', label: 'Products', data: views.products },
    '/operator/subscriptions': { view: 'subscriptions', label: 'Subscriptions', data: views.subscriptions },
    '/operator/reconciliation': { view: 'reconciliation', label: 'Reconciliation', data: views.reconciliation },
    '/operator/prices': { view: 'prices', label: 'Prices', data: views.priceChanges },
    '/operator/catalog': catalog,
  }
  const actions: Record<string, Action> = {
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
  const shared = { screens, actions, metrics, headers, render, baseUrl, log }
  return {
    metrics,
    console: access && createConsole({ access, ...shared }),
    watcher,
    start() {
      funnel.start()
      watcher?.start(COMPARE_SECONDS)
    },
    async stop() {
      await watcher?.stop()
      await funnel.stop()
    },
  }
}

/** Null where there is no chain to read. */
async function openWatcher(parts: OversightParts, metrics: Metrics): Promise<Watcher | null> {
  const { config, road, journal, db, lease, log, now } = parts
  const rpcUrl = road.sandbox?.rpcUrl ?? config.rpcUrl
  if (rpcUrl === null) return null
  const isLocal = road.sandbox !== null
  const rows = await openRows(db)
  const { network, payTo } = road
  const tell = createAlerts({ url: config.alertWebhookUrl, service: config.baseUrl, log, now })
  const compare = createComparison({
    rpc: createRpc(rpcUrl),
    network,
    payTo,
    journal,
    rows,
    tell,
    log,
    now,
    own: new Set(config.ownWallets),
    depth: isLocal ? 0 : DEPTH,
    lookBack: isLocal ? null : LOOK_BACK,
    graceSeconds: GRACE_SECONDS,
  })
  return createWatcher({ compare, rows, lease, onCompared: ({ buckets }) => metrics.reconciled(buckets), log })
}
