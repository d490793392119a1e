/** An edition for a look at it: everything in memory, no job started, nothing listening, nothing sold. */
import { createDocumentsPlugin } from '../gateway/documents/documents-plugin.ts'
import { createPlansPlugin } from '../gateway/documents/plans/plans.ts'
import { createReceiptsPlugin } from '../gateway/documents/receipts/receipts.ts'
import { CatalogError, type Issue } from '../gateway/validation/issue.ts'
import type { Config } from '../gateway/config/config.ts'
import { buildEdition } from '../gateway/editions/build.ts'
import { createContext } from '../gateway/editions/context.ts'
import { COPIES, createCopies } from '../gateway/editions/code-copies.ts'
import type { Edition } from '../gateway/editions/edition.ts'
import { createLog } from '../gateway/observe/log.ts'
import { SANDBOX } from '../gateway/config/settlement.ts'
import { knownNetworks, findNetwork, NETWORKS } from '../gateway/config/networks.ts'
import { openDatabase } from '../gateway/stores/database.ts'
import { openKv } from '../gateway/stores/kv.ts'
import { migrate } from '../gateway/stores/migrations.ts'
import { createTokens } from '../gateway/tokens/access-tokens.ts'

export interface Strict {
  /** Null where service.json or plans.json has a mistake. */
  readonly edition: Edition | null
  readonly mistakes: readonly Issue[]
  close(): Promise<void>
}

const NOBODY = `0x${'0'.repeat(40)}` as const

/** Builds the catalog of a configuration with every mistake it has. Throws only where a folder cannot be read. */
export async function buildStrictly(config: Config, now: () => Date = () => new Date()): Promise<Strict> {
  const log = createLog('silent')
  const db = openDatabase({ file: ':memory:' })
  const kv = openKv({ url: null })
  const tokens = await createTokens({ keys: config.tokenKeys, dataDir: null, issuer: config.baseUrl, now })
  let edition: Edition | null = null
  const isSandbox = config.network === SANDBOX
  // What is wrong with the file of networks is among the mistakes of the catalog.
  const { known } = knownNetworks(config.catalogDir)
  const network = findNetwork(known, config.network) ?? NETWORKS['base-sepolia']
  const documents = createDocumentsPlugin({
    baseUrl: config.baseUrl,
    network,
    payTo: config.payTo ?? NOBODY,
    now,
    editions: () => edition as Edition,
    mistakes: () => [],
    prices: { history: async () => [] },
    jwks: () => tokens.jwks(),
    started: now(),
    dataMode: config.dataMode,
    settlerHealth: () => ({ ready: true }),
  })
  const plans = createPlansPlugin({ tokens, baseUrl: config.baseUrl })
  const receipts = createReceiptsPlugin({ tokens, networks: [network], now })
  let mistakes: readonly Issue[]
  try {
    const built = await buildEdition({
      catalogDir: config.catalogDir,
      schemaDir: config.schemaDir,
      pluginDirs: config.pluginDirs,
      copy: createCopies(COPIES),
      builtins: [documents, plans, receipts],
      contextOf: (plugin, product, settings) => createContext({ config, plugin, product, settings, db, kv, log, now }),
      checkAnswers: true,
      ...(isSandbox ? {} : { networks: new Set(config.networks.map((lane) => lane.network)) }),
      now,
      log,
      secret: (name) => config.secret(name),
      migrate: (plugin, steps) => migrate(db, plugin, steps),
    })
    edition = built.edition
    mistakes = built.mistakes
  } catch (error) {
    if (!(error instanceof CatalogError)) throw error
    mistakes = error.issues
  }
  return {
    edition,
    mistakes,
    async close() {
      await edition?.stop()
      await db.destroy()
    },
  }
}
