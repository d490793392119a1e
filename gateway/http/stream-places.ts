/** How many streams may be open at once, in all and for one caller. Each holds a socket for as long as its caller likes. */
import type { ServerResponse } from 'node:http'
import { RateLimited } from '../errors.ts'
import { type CallerAddress, limitedPlaceOf } from './caller-address.ts'

/** An access token and an address open any number of streams. Each may hold this part of the places, so that others find some. */
const PART_OF_ONE = 0.1
const FULL_SECONDS = 60

/** The places of the streams of one kind: those that are open, or that a payment is being settled for. */
export class StreamPlaces {
  readonly #kind: string
  readonly #most: number
  readonly #mostOfOne: number
  readonly #taken = new WeakSet<ServerResponse>()
  readonly #openOfOne = new Map<string, number>()
  #open = 0

  /** @param kind of the streams, as messages name it */
  constructor(kind: string, most: number) {
    this.#kind = kind
    this.#most = most
    this.#mostOfOne = Math.ceil(most * PART_OF_ONE)
  }

  /**
   * Takes a place until the response has closed. Throws RateLimited if there is none.
   * @param token that opens the stream, and that it counts for; null if it counts for the address of its caller
   */
  take(response: ServerResponse, from: CallerAddress, token: string | null): void {
    if (this.#taken.has(response)) return
    const holder = token === null ? limitedPlaceOf(from) : `token ${token}`
    const open = holder === null ? 0 : (this.#openOfOne.get(holder) ?? 0)
    if (open >= this.#mostOfOne) {
      const name = token === null ? 'address' : 'access token'
      throw new RateLimited(`This ${name} has ${open} open ${this.#kind} streams, which is the most.`, FULL_SECONDS)
    }
    if (this.#open >= this.#most) throw new RateLimited(`Too many open ${this.#kind} streams.`, FULL_SECONDS)
    if (response.closed) return
    this.#taken.add(response)
    this.#add(holder, 1)
    response.once('close', () => this.#add(holder, -1))
  }

  #add(holder: string | null, streams: 1 | -1): void {
    this.#open += streams
    if (holder === null) return
    const open = (this.#openOfOne.get(holder) ?? 0) + streams
    if (open === 0) this.#openOfOne.delete(holder)
    else this.#openOfOne.set(holder, open)
  }
}
