/** Which chain answers behind a port. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Hex } from '../config/networks.ts'
import { createRpc, type Rpc, RpcError } from '../methods/exact-evm/nodes/rpc.ts'
import { isAlive } from './processes.ts'

const START_MS = 15_000
const ANSWER_MS = 5_000

export function urlOf(port: number): string {
  return `http://127.0.0.1:${port}`
}

/** "<chain id> <genesis hash>" of the chain behind a port; null where nothing answers. A busy chain is given time. */
export async function identify(port: number, pid: number): Promise<string | null> {
  const deadline = Date.now() + ANSWER_MS
  do {
    try {
      const [id, genesis] = await identity(createRpc(urlOf(port), 2))
      return `${Number(id)} ${genesis}`
    } catch (error) {
      // Silence may mean a busy chain; a closed port or a refusal never does.
      if (error instanceof RpcError && error.fault !== 'unknown') return null
      await pause(50)
    }
  } while (Date.now() < deadline && (await isAlive(pid)))
  return null
}

/** The genesis hash of a chain that is starting, as soon as it answers; null where it ends or stays silent. */
export async function awaitGenesis(port: number, ended: () => boolean): Promise<Hex | null> {
  const rpc = createRpc(urlOf(port), 2)
  const deadline = Date.now() + START_MS
  while (Date.now() < deadline && !ended()) {
    try {
      return (await identity(rpc))[1]
    } catch {
      await pause(10)
    }
  }
  return null
}

async function identity(rpc: Rpc): Promise<[id: Hex, genesis: Hex]> {
  const id = await rpc.call<Hex>('eth_chainId')
  const block = await rpc.call<{ hash: Hex } | null>('eth_getBlockByNumber', '0x0', false)
  if (!block) throw new RpcError('refused', 'The chain has no first block.')
  return [id, block.hash]
}
