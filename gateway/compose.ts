/** The only composition root: wires stores, payments, editions and transports. */
import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createDocumentsPlugin } from './documents/documents-plugin.ts'
import { createPlansPlugin } from './documents/plans/plans.ts'
import { createReceiptsPlugin } from './documents/receipts/receipts.ts'
import { withReceipts } from './documents/receipts/signing.ts'
import { createReissue } from './documents/plans/reissue.ts'
import { createServe } from './calls/serve.ts'
import type { Issue } from './validation/issue.ts'
import { createClock } from './clock.ts'
import type { Config } from './config/config.ts'
import { buildEdition } from './editions/build.ts'
import { createContext } from './editions/context.ts'
import { COPIES, createCopies } from './editions/code-copies.ts'
import type { Edition } from './editions/edition.ts'
import { createSwap, type Swap } from './editions/swap.ts'
import { type Watch, watchFolders } from './editions/watch.ts'
import { SANDBOX } from './config/settlement.ts'
import { createLog } from './observe/log.ts'
import { createOversight } from './oversight.ts'
import { recipientsOf } from './config/pay-to.ts'
import { openJournal } from './payments/journal/open-journal.ts'
import { createAccepts } from './methods/exact-evm/erc1271.ts'
import type { Journal } from './payments/journal/journal.ts'
import { createOffers } from './x402/signed-offers.ts'
import { createPayments } from './payments/payments.ts'
import { openPrices } from './payments/price-history.ts'
import { createReconciler } from './payments/recovery.ts'
import type { Logger } from './plugin/plugin.ts'
import { nodesOf, openRoad, type Road } from './road.ts'
import { createRevocations, type Revocations } from './tokens/revocations.ts'
import { openDatabase } from './stores/database.ts'
import { openKv } from './stores/kv.ts'
import { createLease } from './stores/lease.ts'
import { migrate } from './stores/migrations.ts'
import { createOnce } from './stores/nonce-store.ts'
import { createTokens } from './tokens/access-tokens.ts'
import { closed } from './http/server.ts'
import { createHttp } from './http/app.ts'
import { createMcp } from './mcp/mcp.ts'
import { createRenderer } from './http/render.ts'

/** What tests put in place of the clock, the chain and the disk. Nothing else can be replaced. */
export interface Overrides {
  readonly road?: Road
  readonly now?: () => Date
  readonly log?: Logger
  /** Sees every step of the journal: how tests stop a process exactly between two steps. */
  readonly journal?: (journal: Journal) => Journal
  /** Keep everything in memory. */
  readonly inMemory?: boolean
  readonly reconcileSeconds?: number
  readonly setupSeconds?: number
}

export interface Gateway {
  readonly server: Server
  readonly config: Config
  readonly road: Road
  readonly journal: Journal
  /** Access tokens taken back. */
  readonly revocations: Revocations
  /** The edition serving new calls. */
  readonly current: Edition
  /** What the last build of an edition found wrong. */
  readonly mistakes: readonly Issue[]
  readonly log: Logger
  /** Builds a new edition from the files and swaps it in; calls in flight finish on the old one. */
  reload(): Promise<readonly Issue[]>
  /** Listens, and starts jobs and reconciliation. Returns the address. */
  listen(): Promise<string>
  /** Stops accepting, finishes what runs, and leaves everything on disk. */
  close(): Promise<void>
}

const RECONCILE_SECONDS = 30
/** Longer than any call may take, so that the timer never touches work in progress. */
const STALE_SECONDS = 600

export async function createGateway(config: Config, overrides: Overrides = {}): Promise<Gateway> {
  const log = overrides.log ?? createLog(config.logLevel)
  const clock = createClock(config.dataMode === 'replay' ? config.replayShift : null, overrides.now)
  const { baseUrl, dataDir, tokenKeys: keys, quoteGraceSeconds: graceSeconds } = config
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const file = (name: string): string => (overrides.inMemory ? ':memory:' : join(dataDir, name))
  const instance = randomUUID()

  const road = overrides.road ?? (await openRoad(config, log))
  const { network, payTo, others = [] } = road
  const accounts = { network, payTo, others }
  const networks = recipientsOf(accounts).map((payee) => payee.network)
  const opened = await openJournal({
    ...(config.databaseUrl === null ? { file: file('journal.sqlite') } : { url: config.databaseUrl }),
    instance,
    now: () => clock.wall().getTime(),
  })
  const journal = overrides.journal?.(opened) ?? opened
  let isWorking = (_key: string): boolean => false
  const reconciler = createReconciler({
    journal,
    settler: road.settler,
    now: clock.wall,
    log,
    staleSeconds: STALE_SECONDS,
    answerRetentionSeconds: config.answerRetentionSeconds,
    isWorking: (key) => isWorking(key),
  })
  await reconciler.run(true)

  const db = openDatabase(config.databaseUrl === null ? { file: file('products.sqlite') } : { url: config.databaseUrl })
  const kv = openKv({ url: config.keyvUrl, log })
  const lease = createLease(db, instance, clock.wall)
  const prices = await openPrices({ db, now: clock.wall, graceSeconds })
  const copy = createCopies(COPIES, log)
  const revocations = createRevocations(db, log)
  const revoked = revocations.ids
  const tokens = await createTokens({ keys, dataDir, issuer: baseUrl, now: clock.wall, revoked })
  const documents = createDocumentsPlugin({
    baseUrl,
    ...accounts,
    now: clock.wall,
    editions: () => swap.current,
    mistakes: () => swap.mistakes,
    prices,
    jwks: () => tokens.jwks(),
    started: clock.wall(),
    dataMode: config.dataMode,
    settlerHealth: (network) => road.settler.health(network),
  })
  const accepts = createAccepts(nodesOf(road, config), log)
  const once = createOnce(db, clock.wall)
  const reissue = createReissue({ journal, tokens, baseUrl, revoked, once, accepts, now: clock.wall })
  const plans = createPlansPlugin({ tokens, baseUrl, reissue })
  const receipts = createReceiptsPlugin({ tokens, networks, journal, now: clock.wall })
  const build = (previous?: Edition) =>
    buildEdition({
      catalogDir: config.catalogDir,
      schemaDir: config.schemaDir,
      pluginDirs: config.pluginDirs,
      builtins: [documents, plans, receipts],
      copy,
      contextOf: (plugin, product, settings) =>
        createContext({ config, plugin, product, settings, db, kv, log, now: clock.data }),
      ...(previous ? { previous } : {}),
      checkAnswers: true,
      ...(config.network === SANDBOX ? {} : { networks: new Set(networks.map(({ name }) => name)) }),
      ...(overrides.setupSeconds === undefined ? {} : { setupSeconds: overrides.setupSeconds }),
      lease,
      now: clock.data,
      log,
      secret: config.secret,
      migrate: (plugin, steps) => migrate(db, plugin, steps),
      onLate: () => opening.then(({ reload }) => reload()),
    })
  /** Ours first, so that no plugin draws over them; and last, where the layout is. */
  const views = [config.viewDir, config.viewDir]
  const openedAt = Date.now()
  let readAt = clock.wall()
  const opening: Promise<Swap> = createSwap({
    build(previous) {
      readAt = clock.wall()
      return build(previous)
    },
    async prepare({ catalog, withheld, viewDirs }) {
      await prices.record(catalog, withheld.length === 0, readAt)
      views.splice(1, views.length - 2, ...viewDirs)
    },
    log,
  })
  const swap = await opening

  const render = createRenderer({ viewDirs: views })
  const stores = { config, road, journal, db, lease, prices, revocations }
  const oversight = await createOversight({ ...stores, swap: () => swap, render, log, now: clock.wall })
  const { metrics, console: operator } = oversight
  const payments = createPayments({
    ...accounts,
    baseUrl,
    journal,
    settler: metrics.timed(road.settler),
    now: clock.wall,
    formerPrices: prices.former,
    offers: createOffers({ sign: tokens.sign, now: clock.wall, graceSeconds }),
  })
  ;({ isWorking } = payments)
  const flow = createServe({ payments, tokens, now: clock.data, log })
  const sealed = withReceipts({ tokens, journal, payments, log }, flow)
  const serve = metrics.watch((edition, ...call) => swap.during(edition, () => sealed(edition, ...call)))
  const onEdition = (listener: (edition: Edition) => void): (() => void) =>
    swap.onEdition((edition, { catalog }) => void (edition.catalog.version === catalog.version || listener(edition)))
  const mcp = createMcp({ editions: swap, serve, onEdition, baseUrl, accounts, log })
  const server = createHttp({ editions: swap, serve, config, log, render, mcp, network: road.network, operator })

  let watch: Watch | null = null
  const reloadQuietly = (): void =>
    void swap.reload().catch((error: unknown) => log.error({ err: error }, 'the catalog was not reloaded'))

  return {
    server,
    config,
    road,
    journal,
    revocations,
    log,
    get current() {
      return swap.current
    },
    get mistakes() {
      return swap.mistakes
    },
    reload: swap.reload,
    async listen() {
      await revocations.start()
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(config.port, config.host, () => resolve())
      })
      swap.current.start()
      const folders = [config.catalogDir, config.schemaDir, config.viewDir, ...config.pluginDirs]
      watch = await watchFolders({ folders, since: openedAt, onRest: reloadQuietly, log })
      reconciler.start(overrides.reconcileSeconds ?? RECONCILE_SECONDS)
      oversight.start()
      const { port } = server.address() as AddressInfo
      const host = config.host.includes(':') ? `[${config.host}]` : config.host
      return `http://${host}:${port}`
    },
    async close() {
      await watch?.close()
      revocations.stop()
      await reconciler.stop()
      mcp.close()
      await closed(server)
      await payments.idle()
      await oversight.stop()
      await swap.close()
      await lease.end()
      await journal.close()
      await db.destroy()
      await kv('').disconnect()
      await road.close()
    },
  }
}
