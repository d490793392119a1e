/**
 * `npm run lab -- chaos`: kills a real gateway with SIGKILL at random under paid load on a local chain, and then reads from the
 * chain who was charged for what. With `--postgres` two gateways share one journal on PostgreSQL, every payment goes to any
 * of them, and one or both are killed. It runs for the given time and until the numbers are reached. Exits with 1 if a
 * buyer was charged twice, paid for nothing or got an answer without paying.
 */
import { randomInt } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import { NETWORKS, type Hex } from '../../gateway/config/networks.ts'
import { createRpc, type Rpc } from '../../gateway/methods/exact-evm/nodes/rpc.ts'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { newWallets, requirementOf } from './bench/calls/payments.ts'
import { startLoad } from './chaos/buyers.ts'
import { fundBuyers, openLocalMarket } from './chaos/local-market.ts'
import { startPostgres } from './chaos/own-postgres.ts'
import { faultsOf, judge, readTransfers, type Verdict } from './chaos/verdict.ts'
import { flag, number, readOptions, root, say, sayTable } from './experiment.ts'
import { type Gateway, startGateway } from './gateway.ts'

const network = NETWORKS['base-sepolia']
const shop = join(root, 'test/fixtures/shop')
const FUNDS = 1_000_000_000n
const BLOCK_SECONDS = 1

const options = readOptions({
  minutes: number('N', 'how long to go on killing', 2),
  calls: number('N', 'go on until so many calls were paid', 0),
  kills: number('N', 'go on until so many gateways were killed', 0),
  buyers: number('N', 'buyers that pay at once', 6, 1),
  postgres: flag('two gateways that share a journal on PostgreSQL'),
}).values

interface Chaos extends Verdict {
  readonly paidCalls: number
  readonly sent: number
  readonly kills: number
  /** Purchases whose outcome the buyer still does not know. */
  readonly unresolved: number
  readonly answers: Readonly<Record<string, number>>
}

/** The gateways under test, and what they were paid on. */
interface Scene {
  readonly victims: readonly Gateway[]
  readonly baseUrls: readonly string[]
  readonly rpc: Rpc
  readonly payTo: Hex
  openJournal(): Promise<Journal>
  /** Ends what the gateways need. They have ended before. */
  close(): Promise<void>
}

const SHOP = {
  CATALOG_DIR: join(shop, 'catalog'),
  PLUGIN_DIRS: join(shop, 'plugins'),
  LOG_LEVEL: 'silent',
}

/** One gateway on its sandbox. */
async function openSandboxScene(folder: string): Promise<Scene> {
  const port = await freePort()
  const victim = await startGateway({ ...SHOP, PORT: String(port), DATA_DIR: folder })
  const data = join(folder, 'sandbox-sample')
  const sandbox = JSON.parse(readFileSync(join(data, 'sandbox.json'), 'utf8')) as { rpc_url: string; pay_to: Hex }
  return {
    victims: [victim],
    baseUrls: [`http://127.0.0.1:${port}`],
    rpc: createRpc(sandbox.rpc_url, 60),
    payTo: sandbox.pay_to,
    openJournal: () => openJournal({ file: join(data, 'journal.sqlite') }),
    close: async () => {},
  }
}

/** Two gateways with one address and one journal, as behind a load balancer, on a chain with blocks of a second. */
async function openSharedScene(folder: string): Promise<Scene> {
  const postgres = await startPostgres(folder)
  const market = await openLocalMarket(BLOCK_SECONDS)
  const ports = [await freePort(), await freePort()] as const
  const baseUrls = ports.map((port) => `http://127.0.0.1:${port}`)
  const victims: Gateway[] = []
  for (const port of ports) {
    const settlement = await market.environment({ port, dataDir: join(folder, String(port)) })
    victims.push(
      await startGateway({ ...settlement, ...SHOP, BASE_URL: baseUrls[0] as string, DATABASE_URL: postgres.url }),
    )
  }
  const { rpc, payTo } = market
  return {
    victims,
    baseUrls,
    rpc,
    payTo,
    openJournal: () => openJournal({ url: postgres.url }),
    async close() {
      await market.close()
      postgres.stop()
    },
  }
}

async function chaos(): Promise<Chaos> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-chaos-'))
  const { victims, baseUrls, rpc, payTo, ...scene } = await (options.postgres ? openSharedScene : openSandboxScene)(
    folder,
  )
  const stop = (): Promise<unknown> => Promise.all(victims.map((victim) => victim.stop()))
  try {
    const buyers = newWallets(options.buyers)
    const accounts = buyers.map(({ address }) => address)
    await fundBuyers(rpc, network, accounts, FUNDS)
    // The buyers name their purchases by no identifier, as the plainest client does.
    const asked = await requirementOf(`${baseUrls[0]}/v1/echo/price`)
    const requirement = { ...asked, resource: undefined, extensions: null }
    const fromBlock = Number(await rpc.call<Hex>('eth_blockNumber'))
    const load = startLoad({ baseUrls, requirement, buyers, path: (id) => `/v1/echo/${id}` })
    const ends = Date.now() + options.minutes * 60_000
    let kills = 0
    while (Date.now() < ends || kills < options.kills || load.purchases.length < options.calls) {
      await delay(randomInt(500, 6_000))
      const killed = chosenFrom(victims)
      await Promise.all(killed.map((victim) => victim.kill()))
      await Promise.all(killed.map((victim) => victim.restart()))
      const before = kills
      kills += killed.length
      if (Math.floor(kills / 5) > Math.floor(before / 5)) say(`${kills} kills, ${load.purchases.length} paid calls`)
    }
    await load.stop()
    say('no more kills; every buyer repeats its open payments')
    const unresolved = await load.resolveOpen()
    const transfers = await readTransfers(rpc, network, payTo, fromBlock)
    await stop()
    const journal = await scene.openJournal()
    const verdict = await judge(load.purchases, transfers, journal, network)
    await journal.close()
    const sent = load.purchases.reduce((sum, purchase) => sum + purchase.sent, 0)
    const answers = Object.fromEntries(load.answers)
    return { paidCalls: load.purchases.length, sent, kills, ...verdict, unresolved, answers }
  } finally {
    await stop()
    await scene.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** One of several gateways, or all of them in one of three cases. */
function chosenFrom(victims: readonly Gateway[]): readonly Gateway[] {
  if (randomInt(3) === 0) return victims
  return [victims[randomInt(victims.length)] as Gateway]
}

const began = Date.now()
const result = await chaos()
const { answers, ...figures } = result
const seconds = Math.round((Date.now() - began) / 1000)
sayTable(
  Object.entries({ ...figures, answers: JSON.stringify(answers), seconds }).map(([name, value]) => [
    name,
    String(value),
  ]),
  [0, 1],
)
const faults = faultsOf(result)
if (faults.length > 0 || result.unresolved > 0) {
  say(`FAILED: ${[...faults, ...(result.unresolved > 0 ? [`unresolved: ${result.unresolved}`] : [])].join(', ')}`)
  process.exitCode = 1
}
