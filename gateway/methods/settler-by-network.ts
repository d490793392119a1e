/** One settler for several networks: each payment goes to the settler of its network. */
import type { Settler } from './payment-method.ts'
import type { Network } from '../config/networks.ts'

export interface NetworkSettler {
  readonly network: Network
  readonly settler: Settler
}

/** Combines the settlers of several networks. `check` and `settle` throw for a network without one. */
export function createSettlerByNetwork(settlers: readonly [NetworkSettler, ...NetworkSettler[]]): Settler {
  const byNetwork = new Map(settlers.map(({ network, settler }) => [network.caip2, settler]))

  function on(caip2: string): Settler {
    const settler = byNetwork.get(caip2)
    if (!settler) throw new Error(`Nothing settles on ${caip2}.`)
    return settler
  }

  return {
    kind: settlers[0].settler.kind,
    check: (payment, requirements, options) => on(payment.network).check(payment, requirements, options),
    settle: (payment, requirements, options) => on(payment.network).settle(payment, requirements, options),
    // A payment of a network that is taken no more stays open until its settler is back.
    status: async (record) => (await byNetwork.get(record.network)?.status(record)) ?? UNKNOWN,
    health(network) {
      if (network) return on(network.caip2).health()
      const looks = settlers.map(({ network: { name }, settler }) => ({ name, ...settler.health() }))
      const down = looks.filter(({ ready }) => !ready)
      if (down.length === 0) return { ready: true }
      const reason = down.map(({ name, reason: why = 'not ready' }) => `${name}: ${why}`).join('; ')
      return { ready: down.length < looks.length, reason }
    },
    async close() {
      await Promise.all(settlers.map(({ settler }) => settler.close()))
    },
  }
}

const UNKNOWN = { state: 'pending', transaction: null } as const
