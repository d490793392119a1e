/** Where payments are taken, and who is paid there. */
import type { Hex, Network } from './networks.ts'

/** Who is paid on a network. */
export interface Payee {
  readonly network: Network
  readonly payTo: Hex
}

/** Where payments are taken: on the leading network, which is named where a document names one, and on others. */
export interface Accounts extends Payee {
  readonly further?: readonly Payee[]
}

/** All of them, the leading one first. */
export function payeesOf({ network, payTo, further = [] }: Accounts): readonly [Payee, ...Payee[]] {
  return [{ network, payTo }, ...further]
}
