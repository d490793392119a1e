/**
 * The composition root: the only place that wires parts together. `createGateway` wires everything; `openCatalog` wires
 * what is needed to build and check a catalog without a chain, a server or a sale.
 */
import { randomUUID } from 'node:crypto'
import { statfs } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createAlarms, type DiskParts } from './accounting/alarms.ts'
import { createAlertSender, type SendAlert } from './accounting/alert-webhook.ts'
import { openFunnel } from './accounting/funnel.ts'
import { openGasSpending } from './accounting/gas-spent.ts'
import { createLedger } from './accounting/ledger.ts'
import { createMetrics, type Metrics } from './accounting/metrics.ts'
import { createOperatorScreens } from './accounting/operator-screens.ts'
import { createScreenData } from './accounting/operator-screen-data.ts'
import { compareAll, comparisonOf } from './accounting/reconciliation/comparison.ts'
import { type CostLimits, createCostComparison } from './accounting/settlement-against-prices.ts'
import { openFindings } from './accounting/reconciliation/findings.ts'
import { createReconciliation, type Reconciliation } from './accounting/reconciliation/reconciliation.ts'
import { createLargeBodyReader } from './calls/large-bodies.ts'
import { createQuotes, createServe, type Serve } from './calls/serve.ts'
import type { Awaitable } from './awaitable.ts'
import { CatalogError, type Issue } from './validation/issue.ts'
import { type Clock, createClock } from './clock.ts'
import type { Config } from './config/config.ts'
import { findNetwork, type Hex, knownNetworks, NETWORKS } from './config/networks.ts'
import { type Recipients, recipientsOf } from './config/pay-to.ts'
import { HELD_BY_SIGNER, readingNodes, SAFE_BLOCKS, SANDBOX } from './config/settlement.ts'
import type { Warning } from './documents/document.ts'
import { createDocumentsPlugin } from './documents/documents-plugin.ts'
import { planPurchases } from './documents/plans/plan-purchases.ts'
import { createPlansPlugin } from './documents/plans/plans-plugin.ts'
import { createReissue } from './documents/plans/reissue.ts'
import { createReceiptsPlugin } from './documents/receipts/receipts-plugin.ts'
import { withReceipts } from './documents/receipts/signed-receipts.ts'
import { buildEdition, loadAhead } from './editions/build.ts'
import { type Breakers, createBreakers } from './editions/circuit-breaker.ts'
import { JsonFiles } from './catalog/documents.ts'
import { readCheckedSchemas } from './editions/checked-schemas.ts'
import { COPIES, type Copy, createCopies } from './editions/code-copies.ts'
import type { PluginLoads } from './editions/load-plugin.ts'
import { knownValidators } from './editions/known-validators.ts'
import { createContext } from './editions/plugin-context.ts'
import { createWorkerPool, type WorkerPool } from './editions/worker-pool.ts'
import { WorkQueues } from './editions/work-queues.ts'
import type { Edition } from './editions/edition.ts'
import type { JobTimers } from './editions/jobs.ts'
import { type BuildEdition, createSwap, type Swap } from './editions/swap.ts'
import { type Watch, watchFolders } from './editions/watch.ts'
import { createHttpServer } from './http/app.ts'
import { BodyStorage } from './http/body-storage.ts'
import { CallerAddresses } from './http/caller-address.ts'
import { createNameClient } from './http/client-names.ts'
import { createLimits } from './http/rate-limit.ts'
import { createOperatorConsole, type OperatorConsole } from './http/operator-console.ts'
import { OperatorSessions } from './http/operator-session.ts'
import { createRenderer, type Render } from './http/render.ts'
import { closeServer, type ClosingServer } from './http/server.ts'
import { createLargeMessages } from './mcp/large-messages.ts'
import type { McpHandler, McpParts } from './mcp/mcp.ts'
import { createChainSettler } from './methods/exact-evm/chain/chain-settler.ts'
import { createErc1271Check, type NodesOfNetwork } from './methods/exact-evm/erc1271.ts'
import { createExactEvm } from './methods/exact-evm/exact-evm.ts'
import { chainSettlerOptions, openSettlers } from './methods/exact-evm/open-settlers.ts'
import type { GasAccount, PaymentMethod, Settler } from './methods/payment-method.ts'
import { createLog } from './observe/log.ts'
import { once } from './once.ts'
import { openJournal } from './payments/journal/open-journal.ts'
import type { Journal } from './payments/journal/journal.ts'
import { NodeCallBudget } from './payments/node-call-budget.ts'
import { createPayments, type Payments } from './payments/payments.ts'
import { openPriceHistory, type PriceHistory } from './payments/price-history.ts'
import { createFinalityWatch } from './payments/finality-watch.ts'
import { createRecovery } from './payments/recovery.ts'
import {
  createSignInLimit,
  createWalletSignIn,
  type MessageChecks,
  type WalletSignIn,
} from './payments/wallet-sign-in.ts'
import type { Logger } from 'pino'
import type { Plugin } from './plugin/plugin.ts'
import { joinSandbox, openSandbox, type Sandbox, type SharedSandbox } from './sandbox/sandbox.ts'
import { openDatabase, type OpenDatabase } from './stores/database.ts'
import { type Kv, openKv } from './stores/kv.ts'
import type { SignerClient } from './stores/signer-client.ts'
import { createLease, type Lease } from './stores/lease.ts'
import { migrate } from './stores/migrations.ts'
import { closeDataFolder, makePrivateFolder } from './stores/private-files.ts'
import { serverError } from './stores/postgres-error.ts'
import { checkSqliteFile, type FileCheck, openingError } from './stores/sqlite-files.ts'
import { createNonceStore } from './stores/nonce-store.ts'
import type { Peers } from './stores/peers.ts'
import { openRedis } from './stores/redis.ts'
import { createRedisPeers } from './stores/redis-peers.ts'
import { keepTickShape } from './tick-shape.ts'
import { createTokens, type Tokens } from './tokens/access-tokens.ts'
import type { Attestations } from './tokens/attestation-keys.ts'
import { openLocalKeys, type StatementSigner } from './tokens/statement-signer.ts'
import { createRevocations, type Revocations } from './tokens/revocations.ts'
import { createOffers } from './x402/signed-offers.ts'

/** The networks that payments are taken on, and who settles them. */
export interface Settlement extends Recipients {
  /** The payment method of each network; "exact" by EIP-3009 if absent. */
  readonly methods?: readonly PaymentMethod[]
  /** Settles on each of the networks. */
  readonly settler: Settler
  /** The local chain with its buyer; null in production. */
  readonly sandbox: Sandbox | null
  close(): Promise<void>
}

/** What tests replace: the clock, the chain, the log and the disk. A worker brings what its primary gave it. */
export interface Overrides {
  readonly settlement?: Settlement
  /** A sandbox that another process keeps open. */
  readonly sandbox?: SharedSandbox
  /** The other workers of this machine. Without Redis, limits and circuit breakers are shared with them. */
  readonly peers?: Peers
  /** Holds the keys; a promise while it starts. Without it, those of the configuration sign in this process. */
  readonly signer?: Awaitable<SignerClient> | null
  readonly now?: () => Date
  /** The clock of the data, if it is not that of `now`. */
  readonly dataNow?: () => Date
  /** Begins the runs of jobs. */
  readonly jobTimers?: JobTimers
  readonly log?: Logger
  /** Wraps the journal, so that a test can stop a process exactly between two steps. */
  readonly journal?: (journal: Journal) => Journal
  /** Keeps the databases in memory. */
  readonly inMemory?: boolean
  /** Whether open payments are finished before calls are accepted. True if absent; false where another process does it. */
  readonly recovers?: boolean
  readonly reconcileSeconds?: number
  readonly lookSeconds?: number
  readonly alarmSeconds?: number
  readonly setupSeconds?: number
}

export interface Gateway {
  readonly server: ClosingServer
  readonly config: Config
  readonly settlement: Settlement
  readonly journal: Journal
  /** Revoked access tokens. */
  readonly revocations: Revocations
  /** The edition that serves new calls. */
  readonly current: Edition
  /** The issues that the last build of an edition found. */
  readonly issues: readonly Issue[]
  readonly log: Logger
  /** Builds a new edition from the files and swaps it in. Running calls finish on the old one. */
  reload(): Promise<readonly Issue[]>
  /** Listens, and starts jobs and reconciliation. Returns the address. */
  listen(): Promise<string>
  /** Ends each open connection with its next answer, so that clients connect again, perhaps to another process. */
  renewConnections(): void
  /**
   * Stops accepting calls, waits for the running ones, and closes every store. If a part does not stop cleanly, the others
   * are closed all the same, and the first error is thrown.
   * @param options.drains lets open connections end with an answer, because another process accepts new ones
   */
  close(options?: { readonly drains?: boolean }): Promise<void>
}

/** What a process that died had reserved, another one releases within this time. */
const RECOVER_SECONDS = 5
/** How long a start waits for the chain to say what became of open payments. */
const START_RECOVERY_MS = 2_000
/** How long a large body may wait to be read. With the wait for a computation, less than 28 seconds. */
const READ_WAIT_SECONDS = 4
/** Longer than any call may take, so that recovery never touches a payment that a call is working on. */
const STALE_SECONDS = 600
/** How often the sandbox chain is polled; a local chain costs nothing to read. */
const LOCAL_POLL_MS = 50
const COMPARE_SECONDS = 60
/** A payment that others sent is found and alarmed within the sum of these two. */
const LOOK_SECONDS = 10
const ALARM_SECONDS = 20
/** How often settled payments that are not final are looked at. */
const WATCH_SECONDS = 10
/** Bodies of calls with a valid payment need not wait as those of strangers do. */
const PAID_DISK_BYTES_PER_SECOND = 64_000_000
/** Why a token is revoked whose payment a reorganisation has taken back. */
const REVERSED = 'its payment was reversed'
/** Stands in for PAY_TO while a catalog is only checked. */
const NO_PAY_TO: Hex = `0x${'0'.repeat(40)}`

/**
 * Wires a gateway, finishes the payments that the last process left open, and builds the first edition. Nothing listens
 * before `listen()`. Throws CatalogError if the catalog allows no edition.
 */
export async function createGateway(config: Config, overrides: Overrides = {}): Promise<Gateway> {
  keepTickShape()
  const log = overrides.log ?? createLog(config.logLevel)
  const clock = clockOf(config, overrides.now, overrides.dataNow)
  makePrivateFolder(config.dataDir)
  closeDataFolder(config, log)
  const openedAt = Date.now()
  const inputs = createInputs(log)
  const timeout = overrides.setupSeconds === undefined ? {} : { setupSeconds: overrides.setupSeconds }
  let isLate = false
  let onLate = (): unknown => (isLate = true)
  // Plugins load while the chain and the stores open.
  const ahead = loadAhead({ ...config, ...inputs, ...timeout, builtinNames: BUILTINS, onLate: () => onLate() })
  let recoverPayments = (): void => {}
  const [settlement, stores] = await openBoth(
    async () => overrides.settlement ?? (await openSettlement(config, log, overrides.sandbox, overrides.signer)),
    () => openStores(config, clock, log, overrides, () => recoverPayments()),
  )
  const { journal, prices, revocations } = stores
  const peers = stores.peers ?? overrides.peers ?? null
  const breakers = createBreakers(peers)
  const keys = overrides.signer
    ? remoteKeys(await overrides.signer)
    : await openLocalKeys(config.tokenKeys, config.dataDir, config.secret)
  const tokens = await createTokens({
    keys: null,
    dataDir: null,
    signer: keys,
    issuer: config.baseUrl,
    now: clock.wall,
    revoked: revocations.ids,
  })

  const editions = createSwap({
    prepare: ({ catalog, disabled }, readAt) => prices.record(catalog, disabled.length === 0, readAt),
    now: clock.wall,
    log,
  })
  const metrics = createMetrics({ journal, edition: () => editions.current })
  const readable = readableNetworks(settlement, config)
  const accepts = createErc1271Check(readable, log)
  const nonces = createNonceStore(stores.db, clock.wall)
  const nodeCalls = new NodeCallBudget({ journal, peers })
  const messages = { nonces, accepts, nodeCalls, failures: createSignInLimit(peers) }
  const chains = recipientsOf(settlement).map(({ network }) => network.caip2)
  const signIn = createWalletSignIn({ ...messages, baseUrl: config.baseUrl, chains, now: clock.wall })
  const payments = createPayments({
    network: settlement.network,
    payTo: settlement.payTo,
    others: settlement.others ?? [],
    baseUrl: config.baseUrl,
    journal,
    log,
    methods: settlement.methods ?? recipientsOf(settlement).map(({ network }) => createExactEvm(network)),
    settler: metrics.timed(settlement.settler),
    now: clock.wall,
    formerPrices: prices.former,
    planBlocks: config.allowShallowPlans ? 1 : SAFE_BLOCKS,
    peers,
    nodeCalls,
    signIn,
    offers: createOffers({ sign: tokens.signOffer, now: clock.wall, graceSeconds: config.quoteGraceSeconds }),
  })
  const recovery = createRecovery({
    journal,
    settler: settlement.settler,
    now: clock.wall,
    log,
    staleSeconds: STALE_SECONDS,
    answerRetentionSeconds: config.answerRetentionSeconds,
    isWorking: payments.isWorking,
  })
  const logFailedRecovery = (error: unknown): void => log.error({ err: error }, 'the recovery of open payments failed')
  recoverPayments = () => {
    log.info('payments can be recorded again')
    recovery.run().catch(logFailedRecovery)
  }
  const finality = createFinalityWatch({
    journal,
    settler: settlement.settler,
    lease: stores.lease,
    // The id of a call is that of the token it bought, if it bought one.
    onReversed: ({ callId }) => revocations.revoke(callId, REVERSED, { mayEnd: true }),
    onRestored: ({ callId }) => revocations.restore(callId, REVERSED),
    now: clock.wall,
    log,
  })

  const callers = new CallerAddresses({ ...config, log })
  const plugins = builtInPlugins({
    config,
    recipients: settlement,
    warnings: () => callers.warnings,
    messages,
    signIn,
    journalHealth: journal.health,
    settlerHealth: (network) => settlement.settler.health(network),
    editions,
    stores,
    tokens,
    clock,
  })
  const workers = createWorkerPool()
  // Two, so that a free body never holds up a paid one.
  const bodyReaders = createWorkerPool({ threads: 2, maxWaitSeconds: READ_WAIT_SECONDS })
  const build = editionBuilder({
    config,
    plugins,
    stores,
    workers,
    attestations: keys.attestations,
    breakers,
    clock,
    log,
    ...timeout,
    ...(overrides.jobTimers ? { timers: overrides.jobTimers } : {}),
    onLate: editions.reload,
    inputs,
    ahead,
  })
  const recovered = overrides.recovers === false ? null : recovery.run(true)
  onLate = editions.reload
  await Promise.all([recovered && atMost(START_RECOVERY_MS, recovered, logFailedRecovery), editions.open(build)])
  if (isLate) editions.reload().catch((error: unknown) => log.error({ err: error }, 'the catalog was not reloaded'))

  const render = createRenderer({ viewDir: config.viewDir, pluginViewDirs: () => editions.current.viewDirs })
  const { lookSeconds = LOOK_SECONDS, alarmSeconds = overrides.reconcileSeconds ?? ALARM_SECONDS } = overrides
  const operator = await openOperator({
    config,
    settlement,
    stores,
    editions,
    metrics,
    render,
    lookSeconds,
    alarmSeconds,
    log,
    now: clock.wall,
  })
  const serve = serveCalls({ editions, metrics, payments, tokens, queues: new WorkQueues(workers.size), clock, log })
  const unpaid = { ...createQuotes({ payments }), countOf: metrics.offersOf }
  const folder = join(config.dataDir, 'bodies')
  const bodies = {
    paid: new BodyStorage({ folder, diskBytesPerSecond: PAID_DISK_BYTES_PER_SECOND }),
    free: new BodyStorage({ folder }),
  }
  const limits = createLimits(undefined, peers)
  const nameClient = createNameClient(keys)
  const mcp = mcpOnDemand({
    limits,
    nameClient,
    // Whether a message is paid is known once it was read.
    bodies: bodies.free,
    largeMessages: createLargeMessages(bodyReaders),
    editions,
    serve,
    onEdition: (listener) => onNewCatalog(editions, listener),
    baseUrl: config.baseUrl,
    recipients: settlement,
    log,
  })
  const { network } = settlement
  const server = createHttpServer({
    bodies,
    editions,
    serve,
    unpaid,
    readLarge: createLargeBodyReader(bodyReaders),
    config,
    callers,
    nameClient,
    log,
    render,
    mcp,
    network,
    operator: operator.console,
    limits,
  })

  let watch: Watch | null = null
  return {
    server,
    config,
    settlement,
    journal,
    revocations,
    log,
    get current() {
      return editions.current
    },
    get issues() {
      return editions.issues
    },
    reload: editions.reload,
    async listen() {
      await revocations.start()
      callers.warnAtStart()
      await listenOn(server, config)
      editions.current.start()
      breakers.start()
      watch = await watchCatalog(config, editions, openedAt, log)
      recovery.start(overrides.reconcileSeconds ?? RECOVER_SECONDS)
      finality.start(overrides.reconcileSeconds ?? WATCH_SECONDS)
      operator.start()
      return addressOf(server, config)
    },
    renewConnections: () => server.renewConnections(),
    close: (options) =>
      runAll([
        () => (options?.drains ? closeServer(server, options) : undefined),
        () => watch?.close(),
        () => revocations.stop(),
        () => recovery.stop(),
        () => finality.stop(),
        () => mcp.close(),
        () => closeServer(server),
        () => payments.idle(),
        () => operator.stop(),
        () => breakers.stop(),
        () => editions.close(),
        () => workers.close(),
        () => bodyReaders.close(),
        () => stores.close(),
        () => settlement.close(),
      ]),
  }
}

/** A catalog that was built to be checked. */
export interface OpenedCatalog {
  /** Null if service.json, plans.json or networks.json has an error. */
  readonly edition: Edition | null
  readonly issues: readonly Issue[]
  close(): Promise<void>
}

/**
 * Builds the catalog of a configuration as the gateway does, and returns every issue. Everything is in memory: no chain
 * is opened, no job starts, nothing listens and nothing is sold. Throws only if a folder cannot be read.
 */
export async function openCatalog(config: Config, now?: () => Date): Promise<OpenedCatalog> {
  const log = createLog('silent')
  const clock = clockOf(config, now)
  const stores = await openStores({ ...config, databaseUrl: null, keyvUrl: null }, clock, log, { inMemory: true })
  // They sign nothing that is sold, and may be held by the signer.
  const keys = await openLocalKeys(config.tokenKeys === HELD_BY_SIGNER ? null : config.tokenKeys, null)
  const tokens = await createTokens({
    keys: null,
    dataDir: null,
    signer: keys,
    issuer: config.baseUrl,
    now: clock.wall,
  })
  const editions = createSwap({ prepare: async () => {}, now: clock.wall, log })
  // An error in networks.json is among the issues of the catalog, so it must not fail here.
  const { known } = knownNetworks(config.catalogDir)
  const messages = {
    nonces: createNonceStore(stores.db, clock.wall),
    accepts: async () => false,
    nodeCalls: new NodeCallBudget(stores),
    failures: createSignInLimit(null),
  }
  const plugins = builtInPlugins({
    config,
    recipients: {
      network: findNetwork(known, config.network) ?? NETWORKS['base-sepolia'],
      payTo: config.payTo ?? NO_PAY_TO,
    },
    warnings: () => [],
    messages,
    signIn: createWalletSignIn({ ...messages, baseUrl: config.baseUrl, chains: [], now: clock.wall }),
    journalHealth: () => ({ ready: true }),
    settlerHealth: () => ({ ready: true }),
    editions,
    stores,
    tokens,
    clock,
  })
  const workers = createWorkerPool()
  const close = (): Promise<void> => runAll([() => editions.close(), () => workers.close(), () => stores.close()])
  try {
    await editions.open(
      editionBuilder({ config, plugins, stores, workers, attestations: keys.attestations, clock, log }),
    )
    return { edition: editions.current, issues: editions.issues, close }
  } catch (error) {
    if (error instanceof CatalogError) return { edition: null, issues: error.issues, close }
    await close()
    throw error
  }
}

/**
 * Opens the sandbox chain, or joins the one that is `shared`, or opens the production settlers. Throws if a chain is not
 * the configured one.
 */
export async function openSettlement(
  config: Config,
  log: Logger,
  shared?: SharedSandbox,
  signer?: Awaitable<SignerClient> | null,
): Promise<Settlement> {
  if (config.network !== SANDBOX) {
    const settlers = await openSettlers(config, log, (await signer) ?? null)
    return { ...settlers, sandbox: null, close: () => settlers.settler.close() }
  }
  const { dataDir, sandboxBlockSeconds: blockSeconds } = config
  const sandbox = shared ? joinSandbox(shared) : await openSandbox({ dataDir, blockSeconds, log, payTo: config.payTo })
  const { network, payTo, rpcUrl, settleKey: key } = sandbox
  const local = { rpcUrl, key, network, log, pollMs: LOCAL_POLL_MS }
  const settler = await createChainSettler({ ...local, ...chainSettlerOptions(config, config) })
  return {
    network,
    payTo,
    settler,
    sandbox,
    close: () => runAll([() => settler.close(), () => sandbox.close()]),
  }
}

/** Keys that the signer process holds. */
function remoteKeys(signer: SignerClient): StatementSigner & { readonly attestations: Attestations } {
  const { publicKeys, offerKeys } = signer.keys
  return {
    publicKeys,
    offerKeys,
    sign: (type, statement) => signer.signStatement(type, statement),
    attestations: {
      key: (product, serial) => signer.attestationKey(product, serial),
      sign: (product, serial, text) => signer.signAttestation(product, serial, text),
    },
  }
}

/** The wall clock, and the clock of the data, which a replay may freeze. */
function clockOf({ dataMode, replayShift }: Config, now?: () => Date, dataNow?: () => Date): Clock {
  return createClock(dataMode === 'replay' ? replayShift.frozenAt : null, now, dataNow)
}

/** The nodes to read each network from, the leading network first. */
function readableNetworks(settlement: Settlement, { networks }: Pick<Config, 'networks'>): readonly NodesOfNetwork[] {
  const addresses = settlement.sandbox ? [settlement.sandbox.rpcUrl] : networks.map(({ rpcUrl }) => rpcUrl)
  return recipientsOf(settlement).map(({ network }, at) => ({ network, addresses: addresses[at] ?? null }))
}

interface Stores {
  readonly journal: Journal
  /** Everything but payments: products, prices, leases, counts. */
  readonly db: OpenDatabase
  readonly kv: Kv
  /** The other processes that use the same Redis; null without one. */
  readonly peers: Peers | null
  readonly lease: Lease
  readonly prices: PriceHistory
  readonly revocations: Revocations
  close(): Promise<void>
}

async function openStores(
  { databaseUrl, dataDir, keyvUrl, baseUrl, quoteGraceSeconds: graceSeconds }: Config,
  clock: Clock,
  log: Logger,
  { inMemory = false, journal: wrap = (journal) => journal }: Pick<Overrides, 'inMemory' | 'journal'>,
  onRecovered = (): void => {},
): Promise<Stores> {
  const place = (name: string) =>
    databaseUrl === null ? { file: inMemory ? ':memory:' : join(dataDir, name) } : { url: databaseUrl }
  const instance = randomUUID()
  const now = (): number => clock.wall().getTime()
  const files =
    databaseUrl === null && !inMemory ? [join(dataDir, 'journal.sqlite'), join(dataDir, 'products.sqlite')] : []
  const damage = await checkFiles(files, log)
  const journal = wrap(
    await openJournal({ ...place('journal.sqlite'), instance, now, damage, onRecovered }).catch((error: unknown) => {
      if (databaseUrl !== null) throw serverError(error)
      throw files[0] === undefined ? error : openingError(files[0], error)
    }),
  )
  const db = openDatabase(place('products.sqlite'))
  const redis = keyvUrl === null ? null : openRedis(keyvUrl, log)
  const lease = createLease(db, instance, clock.wall)
  return {
    journal,
    db,
    kv: openKv(redis),
    peers: redis && createRedisPeers(redis, baseUrl),
    lease,
    prices: await openPriceHistory({ db, now: clock.wall, graceSeconds }),
    revocations: createRevocations(db, log),
    async close() {
      // On a disk that cannot be written to any more, it ends by itself.
      await lease
        .end()
        .catch((error: unknown) => log.warn({ err: error }, 'the leases of this process were not released'))
      await runAll([() => journal.close(), () => db.destroy(), () => redis?.close()])
    },
  }
}

/** Checks database files. Resolves with what is found in those too large to be checked before the gateway serves. */
async function checkFiles(files: readonly string[], log: Logger): Promise<{ readonly found: Promise<string | null> }> {
  const checks: FileCheck[] = []
  for (const file of files) checks.push(await checkSqliteFile(file))
  const found = Promise.all(checks.map(({ rest }) => rest)).then((errors) => {
    const error = errors.find((each) => each !== null)
    if (error) log.fatal({ err: error }, 'a database is damaged: no payment is taken')
    return error?.message ?? null
  })
  return { found: found.catch(() => null) }
}

interface PluginParts {
  readonly config: Config
  readonly recipients: Recipients
  /** Settings that the operator should look at. */
  readonly warnings: () => readonly Warning[]
  readonly messages: MessageChecks
  readonly signIn: WalletSignIn
  readonly journalHealth: Journal['health']
  readonly settlerHealth: Settler['health']
  readonly editions: Swap
  readonly stores: Stores
  readonly tokens: Tokens
  readonly clock: Clock
}

/** The plugins that come with the gateway: documents, plans and receipts. */
const BUILTINS: ReadonlySet<string> = new Set(['documents', 'plans', 'receipts'])

/** Creates the plugins of these names. */
function builtInPlugins(parts: PluginParts): readonly Plugin[] {
  const { config, recipients, warnings, messages, signIn, editions, stores, tokens, clock } = parts
  const { baseUrl, dataMode } = config
  const { journal, prices, revocations } = stores
  const documents = createDocumentsPlugin({
    baseUrl,
    network: recipients.network,
    payTo: recipients.payTo,
    others: recipients.others ?? [],
    now: clock.wall,
    editions: () => editions.current,
    issues: () => editions.issues,
    prices,
    jwks: () => tokens.jwks(),
    started: clock.wall(),
    dataMode,
    warnings,
    journalHealth: parts.journalHealth,
    settlerHealth: parts.settlerHealth,
  })
  const reissue = createReissue({
    journal,
    tokens,
    baseUrl,
    revoked: revocations.ids,
    ...messages,
    now: clock.wall,
  })
  const networks = recipientsOf(recipients).map(({ network }) => network)
  return [
    documents,
    createPlansPlugin({ tokens, baseUrl, reissue }),
    createReceiptsPlugin({ tokens, networks, journal, signIn, now: clock.wall }),
  ]
}

interface BuilderParts {
  readonly config: Config
  readonly plugins: readonly Plugin[]
  readonly stores: Stores
  readonly workers: WorkerPool
  readonly attestations: Attestations
  readonly breakers?: Breakers
  readonly clock: Clock
  readonly log: Logger
  readonly setupSeconds?: number
  readonly timers?: JobTimers
  /** Called when a plugin becomes ready after its timeout. */
  readonly onLate?: () => unknown
  readonly inputs?: Inputs
  /** What has begun to load for the first edition. */
  readonly ahead?: PluginLoads
}

/** How the files of editions are read. */
interface Inputs {
  readonly copy: Copy
  readonly files: JsonFiles
}

const createInputs = (log: Logger): Inputs => ({ copy: createCopies(COPIES, { log }), files: new JsonFiles() })

/** Returns the function that builds an edition from the files of the configuration. */
function editionBuilder({
  config,
  plugins,
  stores,
  workers,
  attestations,
  clock,
  log,
  inputs = createInputs(log),
  ahead,
  ...options
}: BuilderParts): BuildEdition {
  const { db, kv, lease } = stores
  const { work } = workers
  const checkedSchemas = readCheckedSchemas()
  return (previous) =>
    buildEdition({
      catalogDir: config.catalogDir,
      schemaDir: config.schemaDir,
      viewDir: config.viewDir,
      pluginDirs: config.pluginDirs,
      builtins: plugins,
      ...inputs,
      contextOf: (plugin, product, settings) =>
        createContext({ config, plugin, product, settings, db, kv, work, attestations, log, now: clock.data }),
      ...(previous ? { previous } : ahead ? { ahead } : {}),
      checkAnswers: config.network === SANDBOX,
      checkedSchemas,
      knownValidators,
      ...(config.network === SANDBOX ? {} : { networks: new Set(config.networks.map(({ network }) => network)) }),
      ...options,
      lease,
      now: clock.data,
      log,
      secret: config.secret,
      migrate: (plugin, steps) => migrate(db, plugin, steps),
    })
}

interface ServeParts {
  readonly editions: Swap
  readonly metrics: Metrics
  readonly payments: Payments
  readonly tokens: Tokens
  readonly queues: WorkQueues
  readonly clock: Clock
  readonly log: Logger
}

/** Serves one call with its receipt signed, its edition kept alive while it runs, and its outcome counted. */
function serveCalls({ editions, metrics, payments, tokens, queues, clock, log }: ServeParts): Serve {
  const serve = withReceipts({ tokens, log }, createServe({ payments, tokens, queues, now: clock.data, log }))
  return metrics.watch((edition, ...call) => editions.during(edition, () => serve(edition, ...call)))
}

interface OperatorParts {
  readonly config: Config
  readonly settlement: Settlement
  readonly stores: Stores
  readonly editions: Swap
  readonly metrics: Metrics
  readonly render: Render
  /** How often the newest blocks are looked at, and how often alarms are checked. */
  readonly lookSeconds: number
  readonly alarmSeconds: number
  readonly log: Logger
  readonly now: () => Date
}

interface Operator {
  /** Null if no OPERATOR_TOKEN is configured. */
  readonly console: OperatorConsole | null
  start(): void
  stop(): Promise<void>
}

/** Wires what the operator sees: the funnel, alarms, reconciliation with the chain, and the console. */
async function openOperator(parts: OperatorParts): Promise<Operator> {
  const { config, settlement, stores, editions, metrics, render, lookSeconds, alarmSeconds, log, now } = parts
  const { journal, db, lease, prices, revocations } = stores
  const { baseUrl, operatorToken, ownWallets: own } = config
  const settlerHealth = () => settlement.settler.health()
  const funnel = await openFunnel(db, log, now, metrics)
  const alert = createAlertSender({ url: config.alertWebhookUrl, service: baseUrl, log, now })
  const reconciliation = await openReconciliation(parts, alert)
  const accounts = (): readonly GasAccount[] => settlement.settler.gasAccounts?.() ?? []
  const limits = costLimitsOf(config)
  warnOfUnknownCoins(settlement, limits, log)
  const gas = {
    accounts,
    belowCost: createCostComparison({
      accounts,
      operations: () => editions.current.catalog.operations.values(),
      limits,
      now,
    }),
    spending: await openGasSpending(db, now),
    lowSettlements: config.gasLowSettlements,
    perHour: config.gasAlarmPerHour,
  }
  metrics.watchGas(gas.accounts)
  const alarms = createAlarms({
    journal,
    ...(config.databaseUrl === null && config.diskLowBytes > 0 ? { disk: diskOf(config) } : {}),
    settlerHealth,
    gas,
    ...(reconciliation ? { foreignPayments: reconciliation.foreignSince } : {}),
    products: () => editions.current.status(),
    freshness: () => editions.current.freshness(),
    lease,
    alert,
    onChecked: metrics.alarmed,
    log,
    now,
  })
  metrics.onSettled(alarms.observe)
  const ledger = createLedger({ journal, own })
  const data = createScreenData({
    journal,
    ledger,
    funnel,
    metrics,
    prices,
    purchases: (catalog, limit) => planPurchases(journal, catalog, { limit }),
    revoked: revocations.ids,
    issues: () => editions.issues,
    reconciliation,
    alarms: alarms.raised,
    settlerHealth,
    networks: recipientsOf(settlement).map(({ network }) => network),
    own,
    now,
  })
  const { screens, downloads, actions } = createOperatorScreens({
    data,
    ledger,
    revocations,
    reconciliation,
    config,
    log,
    now,
  })
  const sessions = operatorToken === null ? null : new OperatorSessions(operatorToken, baseUrl, { now, revocations })
  return {
    console:
      sessions && createOperatorConsole({ sessions, screens, downloads, actions, metrics, render, baseUrl, log }),
    start() {
      funnel.start()
      reconciliation?.start(COMPARE_SECONDS, lookSeconds)
      alarms.start(alarmSeconds)
    },
    async stop() {
      await reconciliation?.stop()
      await alarms.stop()
      await funnel.stop()
    },
  }
}

/** What prices are compared with. The sandbox has the settings of the leading network. */
function costLimitsOf({ networks, gasCoinPrice, gasMaxPercent: maxPercent }: Config): CostLimits {
  const coinPrices = new Map(networks.map(({ network, gasCoinPrice: price }) => [network, price]))
  if (networks.some(({ network }) => network === SANDBOX)) coinPrices.set(NETWORKS['base-sepolia'].name, gasCoinPrice)
  return { coinPrices, maxPercent }
}

/** Gas is paid for with coins whose price no chain knows, and a wrong guess would accuse or excuse every price. */
function warnOfUnknownCoins({ settler }: Settlement, { coinPrices }: CostLimits, log: Logger): void {
  for (const { network } of settler.gasAccounts?.() ?? [])
    if (!network.isTest && (coinPrices.get(network.name) ?? null) === null)
      log.warn(
        { network: network.name },
        'what settlements cost is not compared with prices: GAS_COIN_USD does not say what the coin that pays for gas is worth',
      )
}

/** The disk that the journal is on. */
function diskOf({ dataDir, diskLowBytes }: Config): DiskParts {
  return {
    async free() {
      const { bavail, bsize } = await statfs(dataDir)
      return bavail * bsize
    },
    low: diskLowBytes,
    folder: dataDir,
  }
}

/** Opens the comparison with the chain. Null if no network has a node to read it from. */
async function openReconciliation(parts: OperatorParts, alert: SendAlert): Promise<Reconciliation | null> {
  const { config, settlement, stores, metrics, log, now } = parts
  const { journal, db, lease } = stores
  const isLocal = settlement.sandbox !== null
  const readable = readableNetworks(settlement, config)
  const compared = recipientsOf(settlement).flatMap((recipient, at) => {
    const rpcUrl = readingNodes(
      readable[at]?.addresses ?? null,
      isLocal ? null : (config.networks[at]?.settleRpcUrl ?? null),
    )
    return rpcUrl === null ? [] : [{ ...recipient, rpcUrl, isLocal, twoNodesFrom: config.twoNodesFrom }]
  })
  if (compared.length === 0) return null
  const findings = await openFindings(db)
  const shared = { own: config.ownWallets, journal, findings, alert, log, now }
  const compare = compareAll(compared.map((each) => comparisonOf({ ...each, ...shared })))
  return createReconciliation({
    compare,
    findings,
    lease,
    onCompared: (comparison) => metrics.reconciled(comparison?.buckets ?? {}),
    log,
  })
}

/** The MCP endpoint. It is loaded with its first request, because a start would wait for the schemas of the SDK. */
function mcpOnDemand(parts: McpParts): McpHandler {
  let isLoaded = false
  const load = once(async () => {
    isLoaded = true
    return (await import('./mcp/mcp.ts')).createMcp(parts)
  })
  return {
    handle: async (request, response) => (await load()).handle(request, response),
    close() {
      if (isLoaded) void load().then((mcp) => mcp.close())
    },
  }
}

/** Calls back after each swap that changes the catalog. Returns a function that stops it. */
function onNewCatalog(editions: Swap, listener: (edition: Edition) => void): () => void {
  return editions.onEdition((edition, { catalog }) => {
    if (edition.catalog.version !== catalog.version) listener(edition)
  })
}

/**
 * Runs steps one after the other. A step that fails keeps none of the later ones from running: the first error is thrown
 * in the end.
 */
async function runAll(steps: readonly (() => unknown)[]): Promise<void> {
  const errors: unknown[] = []
  for (const step of steps)
    try {
      await step()
    } catch (error) {
      errors.push(error)
    }
  if (errors.length > 0) throw errors[0]
}

/** Opens two parts at the same time. If one of them fails, the other is closed, and the error is thrown. */
async function openBoth<One extends Closable, Other extends Closable>(
  openOne: () => Promise<One>,
  openOther: () => Promise<Other>,
): Promise<[One, Other]> {
  const [one, other] = await Promise.allSettled([openOne(), openOther()])
  if (one.status === 'fulfilled' && other.status === 'fulfilled') return [one.value, other.value]
  for (const each of [one, other]) if (each.status === 'fulfilled') await each.value.close()
  throw one.status === 'rejected' ? one.reason : (other as PromiseRejectedResult).reason
}

interface Closable {
  close(): Promise<void>
}

/** Waits for work, but not for long: it goes on, and fails later with `onError`. */
async function atMost(ms: number, work: Promise<unknown>, onError: (error: unknown) => void): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, true)
  })
  try {
    if (await Promise.race([work.then(() => false), over])) work.catch(onError)
  } finally {
    clearTimeout(timer)
  }
}

/** Connections that wait to be accepted. With Node's 511, some of those that come at once after a restart would wait a second. */
const BACKLOG = 4_096

async function listenOn(server: ClosingServer, { port, host }: Config): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: BACKLOG }, () => resolve())
  })
}

function addressOf(server: ClosingServer, { host }: Config): string {
  const { port } = server.address() as AddressInfo
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Reloads the catalog whenever a file of it has changed since `openedAt` (milliseconds since the epoch). */
function watchCatalog(config: Config, editions: Swap, openedAt: number, log: Logger): Promise<Watch> {
  return watchFolders({
    folders: [config.catalogDir, config.schemaDir, config.viewDir, ...config.pluginDirs],
    since: openedAt,
    onRest: () =>
      void editions.reload().catch((error: unknown) => log.error({ err: error }, 'the catalog was not reloaded')),
    log,
  })
}
