/** The only composition root: wires stores, payments, editions and transports. */
import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createDocumentsPlugin } from './builtin/documents/index.ts'
import { createPlansPlugin } from './builtin/plans.ts'
import { createServe, type Serve } from './calls/serve.ts'
import type { Mistake } from './catalog/mistake.ts'
import { createClock } from './clock.ts'
import type { Config } from './config.ts'
import { buildEdition } from './editions/build.ts'
import { createContext } from './editions/context.ts'
import type { Edition } from './editions/edition.ts'
import { createLog } from './log.ts'
import { openJournal } from './payments/journal/index.ts'
import type { Journal } from './payments/payment.ts'
import { createPayments } from './payments/payments.ts'
import { createReconciler } from './payments/reconcile.ts'
import type { Logger } from './plugin.ts'
import { openRoad, type Road } from './road.ts'
import { openDatabase } from './stores/database.ts'
import { openKv } from './stores/kv.ts'
import { migrate } from './stores/migrations.ts'
import { createTokens } from './tokens.ts'
import { createHttp } from './transports/http.ts'
import { createMcp } from './transports/mcp.ts'
import { createRenderer } from './transports/render.ts'

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
}

export interface Gateway {
  readonly server: Server
  readonly config: Config
  readonly road: Road
  readonly journal: Journal
  /** The edition serving new calls. */
  readonly current: Edition
  readonly log: Logger
  /** Builds a new edition from the files and swaps it in; calls in flight finish on the old one. */
  reload(): Promise<readonly Mistake[]>
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
  mkdirSync(config.dataDir, { recursive: true })
  const file = (name: string): string => (overrides.inMemory ? ':memory:' : join(config.dataDir, name))
  const instance = randomUUID()

  const road = overrides.road ?? (await openRoad(config, log))
  const opened = await openJournal({
    ...(config.databaseUrl === null ? { file: file('journal.sqlite') } : { url: config.databaseUrl }),
    instance,
    now: () => clock.wall().getTime(),
  })
  const journal = overrides.journal?.(opened) ?? opened
  const reconciler = createReconciler({
    journal,
    settler: road.settler,
    now: clock.wall,
    log,
    staleSeconds: STALE_SECONDS,
    answerRetentionSeconds: config.answerRetentionSeconds,
  })
  await reconciler.run(true)

  const db = openDatabase(config.databaseUrl === null ? { file: file('products.sqlite') } : { url: config.databaseUrl })
  const kv = openKv({ url: config.keyvUrl })
  const tokens = await createTokens({
    keys: config.tokenKeys,
    dataDir: config.dataDir,
    issuer: config.baseUrl,
    now: clock.wall,
  })
  const started = clock.wall()
  const documents = createDocumentsPlugin({
    baseUrl: config.baseUrl,
    network: road.network,
    payTo: road.payTo,
    now: clock.wall,
    editions: () => current,
    jwks: () => tokens.jwks(),
    started,
    dataMode: config.dataMode,
    settlerHealth: () => road.settler.health(),
  })
  const plans = createPlansPlugin({ tokens, baseUrl: config.baseUrl })
  const build = (previous?: Edition) =>
    buildEdition({
      catalogDir: config.catalogDir,
      schemaDir: config.schemaDir,
      pluginDirs: config.pluginDirs,
      builtins: [documents, plans],
      contextOf: (plugin, product, settings) =>
        createContext({ config, plugin, product, settings, db, kv, log, now: clock.data }),
      ...(previous ? { previous } : {}),
      checkAnswers: true,
      now: clock.data,
      log,
      secret: config.secret,
      migrate: (plugin, steps) => migrate(db, plugin, steps),
    })
  const first = await build()
  report(log, first.mistakes)
  let current = first.edition

  const payments = createPayments({
    network: road.network,
    payTo: road.payTo,
    baseUrl: config.baseUrl,
    journal,
    settler: road.settler,
    now: clock.wall,
  })
  const inFlight = new Map<Edition, number>()
  const serve = counted(createServe({ payments, tokens, now: clock.data, log }), inFlight)
  const listeners = new Set<(edition: Edition) => void>()
  const editions = {
    get current() {
      return current
    },
  }
  const onEdition = (listener: (edition: Edition) => void): (() => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const mcp = createMcp({ editions, serve, onEdition, baseUrl: config.baseUrl, network: road.network, log })
  const render = createRenderer({ viewDirs: [config.viewDir] })
  const server = createHttp({ editions, serve, config, log, render, mcp, network: road.network })

  /** The old edition stops when its last call has ended. */
  async function retire(edition: Edition): Promise<void> {
    while ((inFlight.get(edition) ?? 0) > 0) await new Promise((wake) => setTimeout(wake, 50))
    await edition.stop()
  }

  return {
    server,
    config,
    road,
    journal,
    log,
    get current() {
      return current
    },
    async reload() {
      const old = current
      const { edition, mistakes } = await build(old)
      report(log, mistakes)
      if (edition === old) return mistakes
      current = edition
      current.start()
      for (const listener of listeners) listener(current)
      retire(old).catch((error: unknown) => log.error({ err: error }, 'the old edition did not stop cleanly'))
      return mistakes
    },
    async listen() {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(config.port, config.host, () => resolve())
      })
      current.start()
      reconciler.start(overrides.reconcileSeconds ?? RECONCILE_SECONDS)
      const { port } = server.address() as AddressInfo
      const host = config.host.includes(':') ? `[${config.host}]` : config.host
      return `http://${host}:${port}`
    },
    async close() {
      await reconciler.stop()
      mcp.close()
      await closed(server)
      await payments.idle()
      await current.stop()
      await journal.close()
      await db.destroy()
      await kv('').disconnect()
      await road.close()
    },
  }
}

function counted(serve: Serve, inFlight: Map<Edition, number>): Serve {
  return async (edition, bound, request) => {
    inFlight.set(edition, (inFlight.get(edition) ?? 0) + 1)
    try {
      return await serve(edition, bound, request)
    } finally {
      const left = (inFlight.get(edition) ?? 1) - 1
      if (left === 0) inFlight.delete(edition)
      else inFlight.set(edition, left)
    }
  }
}

function report(log: Logger, mistakes: readonly Mistake[]): void {
  for (const mistake of mistakes)
    log.error({ ...mistake }, `catalog: ${mistake.file}${mistake.pointer} ${mistake.message}`)
}

/** Stops accepting, lets running requests end for a while, then cuts what is left. */
async function closed(server: Server): Promise<void> {
  if (!server.listening) return
  const GRACE_MS = 10_000
  await new Promise<void>((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), GRACE_MS)
    server.close(() => {
      clearTimeout(cut)
      resolve()
    })
    server.closeIdleConnections()
  })
}
