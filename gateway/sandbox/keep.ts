/** Watches over a chain: saves it as it grows, keeps its clock near ours, and brings it back when it dies. */
import type { Hex } from '../config/networks.ts'
import { RpcError } from '../methods/exact-evm/nodes/rpc.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { Chain, ChainFolder } from './chain.ts'
import { isAlive } from './processes.ts'

export interface Keeper {
  readonly chain: Chain
  stop(): Promise<void>
}

const LOOK_MS = 2_000
/** Saving a long chain takes longer; this share of the time at most goes into it. */
const SAVE_SHARE = 1 / 20
/**
 * Nobody mines an idle chain, and what is simulated on its latest block sees an old time: an authorization valid since
 * ten minutes ago (x402 v1 clients) would seem to lie in the future.
 */
const IDLE_SECONDS = 240

/** Looks at the chain every two seconds until stopped. `heartbeat`: mine a block when there was none for a while. */
export function keepSafe(options: {
  readonly chain: Chain
  readonly chains: ChainFolder
  readonly attach: () => Promise<Chain>
  readonly heartbeat: boolean
  readonly log: Logger
}): Keeper {
  const { chains, attach, heartbeat, log } = options
  let { chain } = options
  let saved: Hex | null = null
  let nextSave = 0
  let stopped = false
  let looking: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout

  async function look(): Promise<void> {
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
    log.error({ pid: chain.pid }, 'sandbox: the chain has died; it is started again from its last saved state')
    const before = chain.rpcUrl
    chain = await attach()
    if (chain.rpcUrl !== before)
      log.error({ before, now: chain.rpcUrl }, 'sandbox: the chain has moved; restart the gateway to settle again')
  }

  const schedule = (): void => {
    timer = setTimeout(() => {
      looking = look()
        .catch(recover)
        .catch((error: unknown) => log.error({ err: error }, 'sandbox: the chain did not come back'))
        .finally(() => {
          if (!stopped) schedule()
        })
    }, LOOK_MS)
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
      await looking
    },
  }
}
