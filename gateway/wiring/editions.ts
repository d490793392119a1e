/** Builds the catalog with its plugins, and again whenever a file of it changes. */
import type { Parts } from './parts.ts'
import type { Config } from '../config/config.ts'
import { ENV_FILE, type FollowedFile } from '../config/env-file.ts'
import { SANDBOX } from '../config/settlement.ts'
import { buildEdition, type EditionOptions } from '../products/build.ts'
import { JsonFiles } from '../catalog/documents.ts'
import { readCheckedSchemas } from '../products/checked-schemas.ts'
import { COPIES, createCopies } from '../plugin-code/copies.ts'
import { knownValidators } from '../products/known-validators.ts'
import { denyListHook } from '../hooks/deny-list.ts'
import { createContext } from '../products/plugin-context.ts'
import type { WorkerPool } from '../workers/pool.ts'
import type { Edition } from '../products/edition.ts'
import type { BuildEdition, Swap } from '../products/swap.ts'
import { type Watch, watchFolders } from '../plugin-code/watch.ts'
import { createChargedCalls } from '../payments/charged-calls.ts'
import type { Logger } from 'pino'
import type { Plugin } from '../plugin/plugin.ts'
import { migrate } from '../stores/migrations.ts'
import type { Attestations } from '../tokens/attestation-keys.ts'

interface BuilderOptions extends Pick<
  EditionOptions,
  'breakers' | 'paused' | 'setupSeconds' | 'timers' | 'onLate' | 'ahead' | 'checksViews'
> {
  readonly plugins: readonly Plugin[]
  readonly workers: WorkerPool
  readonly attestations: Attestations
  readonly inputs?: ReturnType<typeof createInputs>
  /** Read before each build. Without it, variables keep the values of the configuration. */
  readonly envFile?: FollowedFile
  /** The `fetch` of plugins. The default is the global one. */
  readonly fetch?: typeof fetch
  /** Whether the products of the gateway itself are part of the catalog. True if absent. */
  readonly hasBuiltIns?: boolean
}

/** Creates the readers of the files of editions. */
export const createInputs = (log: Logger) => ({ copy: createCopies(COPIES, { log }), files: new JsonFiles() })

/** Returns the function that builds an edition from the files of the configuration. */
export function editionBuilder(
  { config, stores, clock, log }: Pick<Parts, 'config' | 'stores' | 'clock' | 'log'>,
  {
    plugins,
    workers,
    attestations,
    inputs = createInputs(log),
    envFile,
    ahead,
    fetch,
    hasBuiltIns = true,
    ...options
  }: BuilderOptions,
): BuildEdition {
  const { db, kv, lease, journal } = stores
  const { work } = workers
  const charged = createChargedCalls({ journal, now: clock.wall })
  const checkedSchemas = readCheckedSchemas()
  return (previous) => {
    if (previous) envFile?.reread()
    return buildEdition({
      catalogDir: config.catalogDir,
      schemaDir: config.schemaDir,
      viewDirs: config.viewDirs,
      pluginDirs: config.pluginDirs,
      builtins: plugins,
      builtInHooks: [denyListHook],
      hasBuiltIns,
      ...inputs,
      contextOf: (plugin, product, settings) =>
        createContext({
          config,
          plugin,
          product,
          settings,
          db,
          kv,
          ...(fetch ? { fetch } : {}),
          work,
          attestations,
          charged,
          log,
          now: clock.data,
        }),
      ...(previous ? { previous } : ahead ? { ahead } : {}),
      checkAnswers: config.network === SANDBOX,
      checkedSchemas,
      knownValidators,
      ...(config.network === SANDBOX ? {} : { networks: new Set(config.networks.map(({ network }) => network)) }),
      ...options,
      lease,
      now: clock.data,
      log,
      secret: envFile?.secret ?? config.secret,
      migrate: (plugin, steps) => migrate(db, plugin, steps),
    })
  }
}

/** Calls back after each swap that changes the catalog. Returns a function that stops it. */
export function onNewCatalog(editions: Swap, listener: (edition: Edition) => void): () => void {
  return editions.onEdition((edition, { catalog }) => {
    if (edition.catalog.version !== catalog.version) listener(edition)
  })
}

/** Reloads the catalog whenever a file of it has changed since `openedAt` (milliseconds since the epoch). */
export function watchCatalog(config: Config, editions: Swap, openedAt: number, log: Logger): Promise<Watch> {
  return watchFolders({
    folders: [ENV_FILE, config.catalogDir, config.schemaDir, ...config.viewDirs, ...config.pluginDirs],
    since: openedAt,
    onRest: () =>
      void editions.reload().catch((error: unknown) => log.error({ err: error }, 'the catalog was not reloaded')),
    log,
  })
}
