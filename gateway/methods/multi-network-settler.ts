/** Combines several settlers into one: each payment goes to the settler of its network. */
import type { Finality, Settler } from './payment-method.ts'
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
    if (!settler) throw new Error(`There is no settler for ${caip2}.`)
    return settler
  }

  return {
    kind: settlers[0].settler.kind,
    check: (payment, requirements, options) => on(payment.network).check(payment, requirements, options),
    codeHashOf: (payment) => on(payment.network).codeHashOf?.(payment),
    mayPay: async (payment, requirements, options) =>
      (await on(payment.network).mayPay?.(payment, requirements, options)) ?? null,
    settle: (payment, requirements, options) => on(payment.network).settle(payment, requirements, options),
    // A payment on a network that is no longer configured stays open until the network is configured again.
    status: async (record, options) => (await byNetwork.get(record.network)?.status(record, options)) ?? UNKNOWN,
    async finality(payments) {
      const found = new Map<string, Finality>()
      for (const [caip2, settler] of byNetwork) {
        const here = payments.filter(({ network }) => network === caip2)
        const read = here.length === 0 ? [] : await settler.finality?.(here)
        for (const [at, { key }] of here.entries()) found.set(key, read?.[at] ?? 'final')
      }
      return payments.map(({ key }) => found.get(key) ?? 'shallow')
    },
    health(network) {
      if (network) return on(network.caip2).health()
      const states = settlers.map(({ network: { name }, settler }) => ({ name, ...settler.health() }))
      const down = states.filter(({ ready }) => !ready)
      if (down.length === 0) return { ready: true }
      const reason = down.map(({ name, reason: why = 'not ready' }) => `${name}: ${why}`).join('; ')
      return { ready: down.length < states.length, reason }
    },
    gasAccounts: () => settlers.flatMap(({ settler }) => settler.gasAccounts?.() ?? []),
    async close() {
      await Promise.all(settlers.map(({ settler }) => settler.close()))
    },
  }
}

const UNKNOWN = { state: 'pending', transaction: null } as const
