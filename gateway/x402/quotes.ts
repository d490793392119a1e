/** The 402s of a catalog. */
import type { Catalog, Operation, OperationId } from '../plugin/catalog.ts'
import { ServiceError } from '../errors.ts'
import { type Recipients, type Recipient, recipientsOf } from '../config/pay-to.ts'
import type { Network } from '../config/networks.ts'
import type { Offers } from './signed-offers.ts'
import { createQuoter, type Quote, type Quoter } from './challenge.ts'
import { createRequirements, formatOf, offeredOn, type RequirementFormat } from './payment-requirements.ts'

export type { Quote } from './challenge.ts'

/** A longer address is quoted without its query. */
const URL_CHARACTERS = 2_000

export interface QuoteParts extends Recipients {
  readonly catalog: Catalog
  /** One per network. */
  readonly formats: readonly RequirementFormat[]
  /** False while nothing can be settled there: the network is left out, as long as another one can. Absent: always. */
  readonly isReady?: (network: Network) => boolean
  /** Public address without a trailing slash. */
  readonly baseUrl: string
  /** Signs what is asked; absent: nothing is signed. */
  readonly offers?: Offers
}

interface Made {
  readonly quote: Quoter
  readonly bareUrl: string
  bare: Quote
  /** The step of the offers in `bare`. */
  step: number
}

/**
 * Returns the maker of 402s for one catalog. The plain challenge of an operation at its bare address is built once; an
 * address with a query or another error builds what differs. `error` is the x402 reason where there is one, else a
 * sentence.
 */
export function createQuotes(parts: QuoteParts): (operation: Operation, url: string, error: ServiceError) => Quote {
  const { catalog, formats, isReady, baseUrl, offers } = parts
  const payees = recipientsOf(parts)
  const plain = new ServiceError('payment_required')
  /** By the networks that are offered: all of them, unless one is down. */
  const made = new Map<string, Map<OperationId, Made>>()

  function offerOf(operation: Operation): Made {
    const offered = settling(offeredOn(operation, payees))
    const names = offered.length === payees.length ? '' : offered.map(({ network }) => network.name).join()
    let quoters = made.get(names)
    if (!quoters) made.set(names, (quoters = new Map()))
    const known = quoters.get(operation.id)
    if (known) return known
    const bareUrl = baseUrl + operation.path
    const requirements = offered.map(({ network, payTo }) =>
      createRequirements(operation, formatOf(formats, network), payTo),
    )
    const docs = `${baseUrl}/docs`
    const signing = offers ? { offers } : {}
    const quote = createQuoter({ operation, catalog, requirements, formats, bareUrl, docs, ...signing })
    const fresh = { quote, bareUrl, bare: quote(bareUrl, plain), step: offers?.step() ?? 0 }
    quoters.set(operation.id, fresh)
    return fresh
  }

  /** Those that can be settled now; all of them where none can, since a price is shown whatever is down. */
  function settling(offered: readonly Recipient[]): readonly Recipient[] {
    if (offered.length === 1 || !isReady) return offered
    const ready = offered.filter(({ network }) => isReady(network))
    return ready.length === 0 ? offered : ready
  }

  /** The plain challenge, signed anew where its offers are running out. */
  function renewed(known: Made): Quote {
    const step = offers?.step() ?? 0
    if (known.step !== step) Object.assign(known, { step, bare: known.quote(known.bareUrl, plain) })
    return known.bare
  }

  return (operation, url, error) => {
    const known = offerOf(operation)
    const { quote, bareUrl } = known
    const isPlain = error.code === plain.code && error.message === plain.message
    if (isPlain && url === bareUrl) return renewed(known)
    return quote(url.length > URL_CHARACTERS ? url.replace(/\?.*$/s, '') : url, error)
  }
}
