/** The gateway of a soak run, and everything around it: chain, nodes, database, disk. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Hex } from '../../../gateway/config/networks.ts'
import { freePort } from '../../../gateway/sandbox/anvil.ts'
import { type LyingNode, startLyingNode } from '../../support/lying-node.ts'
import { type LocalMarket, openLocalMarket } from '../chaos/local-market.ts'
import { startPostgres } from '../chaos/own-postgres.ts'
import { root } from '../experiment.ts'
import { type Gateway, startGateway } from '../gateway.ts'

export interface Scene {
  readonly market: LocalMarket
  /** The first of the two nodes that the gateway reads; the other is the chain itself. */
  readonly node: LyingNode
  readonly victim: Gateway
  readonly workers: number
  readonly port: number
  /** Where the journal is. */
  readonly journal: { readonly file: string } | { readonly url: string }
  /** A file system of its own that has the data of the gateway; null if only root could mount one. */
  readonly disk: string | null
  /** The file that has what the gateway prints. */
  readonly output: string
  /** The chain had this block before the first sale. */
  readonly fromBlock: number
  close(): Promise<void>
}

export const BLOCK_SECONDS = 1
const DISK = '3g'

/** Starts a gateway in production configuration with the project's own catalog and made-up data. */
export async function openScene({
  workers,
  postgres,
}: {
  readonly workers: number
  readonly postgres: boolean
}): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-soak-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  const disk = mountDisk(dataDir)
  const database = postgres ? await startPostgres(folder) : null
  const market = await openLocalMarket(BLOCK_SECONDS)
  const fromBlock = Number(await market.rpc.call<Hex>('eth_blockNumber'))
  const node = await startLyingNode(market.chain.rpcUrl)
  const port = await freePort()
  const nodes = [node.url, market.chain.rpcUrl]
  const output = join(folder, 'gateway.log')
  const victim = await startGateway(
    {
      ...(await market.environment({ port, dataDir, nodes, processes: workers })),
      CATALOG_DIR: join(root, 'catalog'),
      PLUGIN_DIRS: join(root, 'plugins'),
      CONFIRM_BLOCKS: '5',
      // A node that lies is believed about no payment at all.
      TWO_NODES_FROM_USD: '0',
      LOG_LEVEL: 'warn',
      // The default is enough for 50,000 sales, which this load reaches within minutes.
      SIGNER_GAS_PER_HOUR: '100000000000000',
      ...(database ? { DATABASE_URL: database.url } : {}),
    },
    {
      args: workers > 1 ? ['--workers', String(workers)] : [],
      nodeOptions: ['--import', pathToFileURL(join(root, 'test/lab/soak/heap-on-signal.mjs')).href],
      onOutput: (text) => appendFileSync(output, text),
    },
  )
  const file = join(dataDir, `${market.chain.network.name}-sample`, 'journal.sqlite')
  const journal = database ? { url: database.url } : { file }
  return {
    market,
    node,
    victim,
    workers,
    port,
    journal,
    disk,
    output,
    fromBlock,
    async close() {
      await victim.stop()
      await node.close()
      await market.close()
      database?.stop()
    },
  }
}

/** Mounts a file system in memory, which can be filled; null if only root could. */
function mountDisk(folder: string): string | null {
  if (userInfo().uid !== 0) return null
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK},mode=700`, 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    return null
  }
  process.prependOnceListener('exit', () => execFileSync('umount', ['-l', folder]))
  return folder
}
