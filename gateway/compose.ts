/**
 * The composition root: the only place that wires parts together. `createGateway` wires everything; `openCatalog` wires
 * what is needed to build and check a catalog without a chain, a server or a sale.
 */
import { builtInPlugins, BUILTINS } from './wiring/built-in-plugins.ts'
import { createInputs, editionBuilder, watchCatalog } from './wiring/editions.ts'
import { addressOf, listenOn, wireHttp } from './wiring/http.ts'
import { atMost, openBoth, runAll } from './wiring/open-and-close.ts'
import { openOperator } from './wiring/operator.ts'
import type { Parts } from './wiring/parts.ts'
import { wirePayments } from './wiring/payments.ts'
import { openSettlement, remoteKeys, type Settlement } from './wiring/settlement.ts'
import { openStores, type StoreOptions } from './wiring/stores.ts'
import { createMetrics } from './accounting/metrics.ts'
import type { Awaitable } from './awaitable.ts'
import { createServe } from './calls/serve.ts'
import { CatalogError, type Issue } from './validation/issue.ts'
import { type Clock, createClock } from './clock.ts'
import type { Config } from './config/config.ts'
import type { FollowedFile } from './config/env-file.ts'
import { findNetwork, type Hex, knownNetworks, NETWORKS } from './config/networks.ts'
import { HELD_BY_SIGNER } from './config/settlement.ts'
import { withReceipts } from './documents/receipts/signed-receipts.ts'
import { loadAhead } from './products/build.ts'
import { createBreakers } from './products/breaker.ts'
import { createPausedSales } from './products/paused-sales.ts'
import { createWorkerPool } from './workers/pool.ts'
import { WorkQueues } from './workers/queues.ts'
import type { Edition } from './products/edition.ts'
import { createHookEvents } from './products/hook-events.ts'
import type { JobTimers } from './products/jobs.ts'
import { createSwap } from './products/swap.ts'
import type { Watch } from './plugin-code/watch.ts'
import { CallerAddresses } from './http/caller-address.ts'
import { createRenderer } from './http/render.ts'
import { closeServer, type ClosingServer } from './http/server.ts'
import { createLog, openLog } from './observe/log.ts'
import type { Journal } from './payments/journal/journal.ts'
import { NodeCallBudget } from './payments/node-call-budget.ts'
import { createSignInLimit, createWalletSignIn } from './payments/wallet-sign-in.ts'
import type { Plugin } from './plugin/plugin.ts'
import type { Logger } from 'pino'
import type { SharedSandbox } from './sandbox/sandbox.ts'
import type { DatabaseOptions } from './stores/database.ts'
import type { SignerClient } from './stores/signer-client.ts'
import { createCallCounts } from './stores/call-counts.ts'
import { closeDataFolder, makePrivateFolder } from './stores/private-files.ts'
import { createNonceStore } from './stores/nonce-store.ts'
import type { Peers } from './stores/peers.ts'
import { keepTickShape } from './tick-shape.ts'
import { createTokens } from './tokens/access-tokens.ts'
import { openLocalKeys } from './tokens/statement-signer.ts'
import type { Revocations } from './tokens/revocations.ts'

/** Parts that tests replace: the clock, the chain, the log and the disk. A worker brings what its primary gave it. */
export interface Overrides extends StoreOptions {
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
  /** Follows the file .env. Without it, variables keep the values of the configuration. */
  readonly envFile?: FollowedFile
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

/** Another process releases the reservations of one that died within this time. */
const RECOVER_SECONDS = 5
/** How long a start waits for the chain to say what became of open payments. */
const START_RECOVERY_MS = 2_000
/** How long a large body may wait to be read. With the wait for a computation, less than 28 seconds. */
const READ_WAIT_SECONDS = 4
/** A payment that others sent is found and alarmed within the sum of these two. */
const LOOK_SECONDS = 10
const ALARM_SECONDS = 20
/** How often settled payments that are not final are looked at. */
const WATCH_SECONDS = 10
/** Stands in for PAY_TO while a catalog is only checked. */
const NO_PAY_TO: Hex = `0x${'0'.repeat(40)}`

/**
 * Wires a gateway, finishes the payments that the last process left open, and builds the first edition. Nothing listens
 * before `listen()`. Throws CatalogError if the catalog allows no edition.
 */
export async function createGateway(config: Config, overrides: Overrides = {}): Promise<Gateway> {
  keepTickShape()
  const log = overrides.log ?? openLog(config)
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
  const paused = createPausedSales(stores.db, log, clock.wall)
  await paused.start()
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
  const hooks = createHookEvents({ editions, log })
  const metrics = createMetrics({ journal, edition: () => editions.current })
  const parts: Parts = { config, settlement, stores, peers, keys, tokens, editions, metrics, clock, log }
  const { payments, quotes, recovery, finality, messages, signIn } = wirePayments(parts, hooks)
  const logFailedRecovery = (error: unknown): void => log.error({ err: error }, 'the recovery of open payments failed')
  recoverPayments = () => {
    log.info('payments can be recorded again')
    recovery.run().catch(logFailedRecovery)
  }

  const callers = new CallerAddresses({ ...config, log })
  const plugins = builtInPlugins(parts, {
    recipients: settlement,
    sandbox: settlement.sandbox,
    warnings: () => callers.warnings,
    messages,
    signIn,
    settlerHealth: (network) => settlement.settler.health(network),
  })
  const workers = createWorkerPool()
  // Two, so that a free body never holds up a paid one.
  const bodyReaders = createWorkerPool({ threads: 2, maxWaitSeconds: READ_WAIT_SECONDS })
  const build = editionBuilder(parts, {
    plugins,
    workers,
    attestations: keys.attestations,
    breakers,
    paused,
    ...timeout,
    ...(overrides.envFile ? { envFile: overrides.envFile } : {}),
    ...(overrides.jobTimers ? { timers: overrides.jobTimers } : {}),
    onLate: editions.reload,
    inputs,
    ahead,
  })
  const recovered = overrides.recovers === false ? null : recovery.run(true)
  onLate = editions.reload
  await Promise.all([recovered && atMost(START_RECOVERY_MS, recovered, logFailedRecovery), editions.open(build)])
  if (isLate) editions.reload().catch((error: unknown) => log.error({ err: error }, 'the catalog was not reloaded'))

  const render = createRenderer(() => editions.current.views)
  const { lookSeconds = LOOK_SECONDS, alarmSeconds = overrides.reconcileSeconds ?? ALARM_SECONDS } = overrides
  const operator = await openOperator(parts, { render, paused, lookSeconds, alarmSeconds })
  const queues = new WorkQueues(workers.size)
  const counts = createCallCounts(stores.db, clock.wall)
  const calls = createServe({ payments, quotes, tokens, editions, hooks, queues, counts, paused, now: clock.data, log })
  const serve = metrics.watch(withReceipts({ tokens, log }, calls))
  let isStopping = false
  const { server, mcp } = wireHttp(parts, {
    serve,
    quotes,
    paused,
    callers,
    bodyReaders,
    render,
    operator: operator.console,
    notReady: () => [
      ...(isStopping ? ['shutdown' as const] : []),
      ...(journal.health().ready ? [] : ['journal' as const]),
      ...(settlement.settler.health().ready ? [] : ['settler' as const]),
    ],
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
      hooks.start()
      breakers.start()
      watch = await watchCatalog(config, editions, openedAt, log)
      recovery.start(overrides.reconcileSeconds ?? RECOVER_SECONDS)
      finality.start(overrides.reconcileSeconds ?? WATCH_SECONDS)
      operator.start()
      return addressOf(server, config)
    },
    renewConnections: () => server.renewConnections(),
    close(options) {
      isStopping = true
      return runAll([
        () => (options?.drains ? closeServer(server, options) : undefined),
        () => watch?.close(),
        () => revocations.stop(),
        () => recovery.stop(),
        () => finality.stop(),
        () => mcp.close(),
        () => closeServer(server),
        () => payments.inProgress.idle(),
        () => operator.stop(),
        () => hooks.stop(),
        () => breakers.stop(),
        () => paused.stop(),
        () => editions.close(),
        () => workers.close(),
        () => bodyReaders.close(),
        () => stores.close(),
        () => settlement.close(),
      ])
    },
  }
}

/** What a test puts in place of the clock, the outside world and the code of a product. */
export interface Replacements {
  readonly now?: () => Date
  readonly fetch?: typeof fetch
  /** Where products keep their tables. The default is memory. */
  readonly database?: DatabaseOptions
  /** Used instead of the one of this name in a folder. */
  readonly plugin?: Plugin
  /** Whether the products of the gateway itself are part of the catalog. True if absent. */
  readonly hasBuiltIns?: boolean
  /** Whether the views of all pages are compiled, to find what is wrong with them. */
  readonly checksViews?: boolean
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
export async function openCatalog(config: Config, replaced: Replacements = {}): Promise<OpenedCatalog> {
  const log = createLog('silent')
  const { now, fetch, database, plugin, hasBuiltIns = true, checksViews = false } = replaced
  const clock = clockOf(config, now)
  const options = { inMemory: true, ...(database ? { products: database } : {}) }
  const stores = await openStores({ ...config, databaseUrl: null, keyvUrl: null }, clock, log, options)
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
  const parts = { config, stores, tokens, editions, clock, log }
  const plugins = builtInPlugins(parts, {
    recipients: {
      network: findNetwork(known, config.network) ?? NETWORKS['base-sepolia'],
      payTo: config.payTo ?? NO_PAY_TO,
    },
    sandbox: null,
    warnings: () => [],
    messages,
    signIn: createWalletSignIn({ ...messages, baseUrl: config.baseUrl, chains: [], now: clock.wall }),
    settlerHealth: () => ({ ready: true }),
  })
  const workers = createWorkerPool()
  const close = (): Promise<void> => runAll([() => editions.close(), () => workers.close(), () => stores.close()])
  try {
    await editions.open(
      editionBuilder(parts, {
        plugins: plugin ? [plugin, ...plugins] : plugins,
        workers,
        attestations: keys.attestations,
        ...(fetch ? { fetch } : {}),
        hasBuiltIns,
        checksViews,
      }),
    )
    return { edition: editions.current, issues: editions.issues, close }
  } catch (error) {
    if (error instanceof CatalogError) return { edition: null, issues: error.issues, close }
    await close()
    throw error
  }
}

/** The wall clock, and the clock of the data, which a replay may freeze. */
function clockOf({ dataMode, replayShift }: Config, now?: () => Date, dataNow?: () => Date): Clock {
  return createClock(dataMode === 'replay' ? replayShift.frozenAt : null, now, dataNow)
}
