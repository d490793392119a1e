/**
 * `npm run lab -- chain`: what a paid call costs a gateway that settles on a real chain with a block a second. Sixteen buyers
 * pay, each the next call when the last is answered, and sign in this process. Beside it the gateway of `npm run lab -- bench`,
 * whose settler has no chain: one settles at once, and one at the end of each second, as blocks would. The second costs more
 * than the first because it sleeps, and what the chain costs more than the second is the price of the chain.
 *
 * Prints microseconds of CPU of the gateway process per paid call, the median of the rounds. The gateways take turns, so that
 * other work on the machine affects all; compare the ratios. Needs Linux.
 */
import { join } from 'node:path'
import { median } from '../../../plugins/lib/quant/rolling-median.ts'
import { freePort } from '../../../gateway/sandbox/anvil.ts'
import { type LocalMarket, openLocalMarket } from '../chaos/local-market.ts'
import { defer, newFolder, number, readOptions, root, sayTable, text } from '../experiment.ts'
import { startGateway } from '../gateway.ts'
import { costOf, requestBytes } from './calls/load.ts'
import { createBuyer, headerOf, newWallets, requirementOf } from './calls/payments.ts'
import { Servers } from './calls/servers.ts'

const { rounds, seconds, profile } = readOptions({
  rounds: number('N', 'rounds of each gateway', 3, 1),
  seconds: number('S', 'seconds of each gateway in a round', 4, 1),
  profile: text('FOLDER', 'write CPU profiles of the gateway on the chain there; its figures are then too high', null),
}).values
const BLOCK_SECONDS = 1
const BUYERS = 16
/** A small product, so that the gateways have nothing else to do. */
const SHOP = join(root, 'test/fixtures/shop')
const SOLD_BY = { CATALOG_DIR: join(SHOP, 'catalog'), PLUGIN_DIRS: join(SHOP, 'plugins') }
const SOLD = '/v1/echo/chain'
/** Code is compiled while it runs, so each gateway is first called by many, and the chain mines at once meanwhile. */
const WARM_UP = { buyers: 128, seconds: 4 }
const USDC = 1_000_000n

interface Gateway {
  readonly name: string
  readonly pids: readonly number[]
  readonly port: number
}

const wallets = newWallets(WARM_UP.buyers)
const servers = new Servers()

/** A gateway without a chain. */
async function openStubbed(name: string, settings: Readonly<Record<string, string>> = {}): Promise<Gateway> {
  const folder = name.replaceAll(/\W+/g, '-')
  const { pid, port } = await servers.startGateway(folder, 0, { settings: { ...SOLD_BY, ...settings } })
  return { name, pids: [pid], port }
}

/** A gateway as an operator configures it, with its receipts and transactions signed by the signer process. */
async function openOnChain(market: LocalMarket): Promise<Gateway> {
  const port = await freePort()
  const environment = { ...(await market.environment({ port, dataDir: newFolder() })), ...SOLD_BY }
  const nodeOptions = profile === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
  const gateway = await startGateway(environment, { nodeOptions })
  defer(() => gateway.stop())
  return { name: 'on a chain', pids: gateway.pids(), port }
}

/** Sends paid calls for so long and resolves with the microseconds of CPU of each. */
async function measure({ pids, port }: Gateway, buyers: number, seconds: number): Promise<number> {
  const sign = createBuyer(wallets.slice(0, buyers), await requirementOf(`http://127.0.0.1:${port}${SOLD}`))
  const next = (): Buffer => requestBytes(port, 'GET', SOLD, { 'payment-signature': headerOf(sign()) })
  return costOf(pids, { port, connections: buyers, seconds, expected: { status: 200 }, next, sleeps: true })
}

const market = await openLocalMarket(BLOCK_SECONDS)
defer(() => market.close())
await market.fund(
  wallets.map(({ address }) => address),
  1_000n * USDC,
)
const gateways = await Promise.all([
  openStubbed('no chain'),
  openStubbed('no chain, once a second', { SETTLE_EVERY_MS: String(BLOCK_SECONDS * 1_000) }),
  openOnChain(market),
])
await market.rpc.call('evm_setIntervalMining', 0)
await market.rpc.call('evm_setAutomine', true)
for (const gateway of gateways) await measure(gateway, WARM_UP.buyers, WARM_UP.seconds)
await market.rpc.call('evm_setAutomine', false)
await market.rpc.call('evm_setIntervalMining', BLOCK_SECONDS)

const measured = gateways.map((gateway) => ({ gateway, micros: [] as number[] }))
for (let round = 0; round < rounds; round++)
  for (const { gateway, micros } of measured) micros.push(await measure(gateway, BUYERS, seconds))
const base = measured[0]?.micros ?? []
const ratios = (micros: readonly number[]): readonly number[] => micros.map((each, at) => each / (base[at] as number))
sayTable([
  ['settler', 'µs CPU a paid call', 'lowest to highest', '× no chain'],
  ...measured.map(({ gateway: { name }, micros }) => [
    name,
    median(micros).toFixed(0),
    `${Math.min(...micros).toFixed(0)} to ${Math.max(...micros).toFixed(0)}`,
    median(ratios(micros)).toFixed(2),
  ]),
])
