/** Keeps a running chain safe: saves new blocks, keeps its clock close to ours, and restarts it if it dies. */
import type { Hex } from '../config/networks.ts'
import { RpcError } from '../methods/exact-evm/nodes/rpc.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { Chain, ChainFolder } from './chain-folder.ts'
import { isAlive } from './processes.ts'

export interface ChainKeeper {
  readonly chain: Chain
  stop(): Promise<void>
}

const CHECK_MS = 2_000
/** Saving a long chain takes long. At most this share of the time is spent on it. */
const SAVE_SHARE = 1 / 20
/**
 * An idle chain mines no blocks, so a simulation on its latest block sees an old time. An authorization that became valid
 * ten minutes ago, as x402 v1 clients sign it, would look as if it were not valid yet.
 */
const IDLE_SECONDS = 240

/** Checks the chain every two seconds until stopped. `heartbeat`: mine a block if there was none for a while. */
export function keepChain(options: {
  readonly chain: Chain
  readonly chains: ChainFolder
  readonly attach: () => Promise<Chain>
  readonly heartbeat: boolean
  readonly log: Logger
}): ChainKeeper {
  const { chains, attach, heartbeat, log } = options
  let { chain } = options
  let saved: Hex | null = null
  let nextSave = 0
  let stopped = false
  let checking: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout

  async function check(): Promise<void> {
    const latest = await chain.rpc.call<{ hash: Hex; timestamp: Hex }>('eth_getBlockByNumber', 'latest', false)
    if (heartbeat && Date.now() / 1000 - Number(latest.timestamp) > IDLE_SECONDS) await chain.rpc.call('evm_mine')
    if (latest.hash === saved || Date.now() < nextSave) return
    const began = Date.now()
    await chains.save(chain)
    saved = latest.hash
    nextSave = Date.now() + (Date.now() - began) / SAVE_SHARE
  }

  async function recover(error: unknown): Promise<void> {
    if (!(error instanceof RpcError) || (await isAlive(chain.pid))) {
      log.warn({ err: error }, 'sandbox: the chain could not be saved')
      return
    }
    log.error({ pid: chain.pid }, 'sandbox: the chain has died; restarting it from its last saved state')
    const before = chain.rpcUrl
    chain = await attach()
    if (chain.rpcUrl !== before)
      log.error(
        { before, now: chain.rpcUrl },
        'sandbox: the chain has a new address; restart the gateway to settle again',
      )
  }

  const schedule = (): void => {
    timer = setTimeout(() => {
      checking = check()
        .catch(recover)
        .catch((error: unknown) => log.error({ err: error }, 'sandbox: the chain could not be restarted'))
        .finally(() => {
          if (!stopped) schedule()
        })
    }, CHECK_MS)
    timer.unref()
  }
  schedule()

  return {
    get chain() {
      return chain
    },
    async stop() {
      stopped = true
      clearTimeout(timer)
      await checking
    },
  }
}
