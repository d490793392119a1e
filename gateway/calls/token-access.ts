/** Access by token: whether a token opens an operation, and streams that end with the token they were opened with. */
import type { Writable } from 'node:stream'
import type { Awaitable } from '../awaitable.ts'
import { ServiceError } from '../errors.ts'
import type { Operation, Plan } from '../plugin/catalog.ts'
import type { Access, ServerEvent } from '../plugin/plugin.ts'
import type { Edition } from '../products/edition.ts'
import type { UpstreamResponse } from '../products/upstream.ts'
import type { Tokens, VerifiedToken } from '../tokens/access-tokens.ts'
import type { Answer, IncomingCall } from './request-and-answer.ts'

interface AcceptedToken {
  readonly access: Extract<Access, { kind: 'token' }>
  readonly plan: Plan
}

interface RefusedToken {
  readonly refusal: ServiceError
}

export type TokenCheck = AcceptedToken | RefusedToken

export type TokenReader = Pick<Tokens, 'recall' | 'verify' | 'remainingMs'>

/** Checks the token of a call. One that is expired, foreign or for another route is refused with a code that says which. */
export function readToken(
  tokens: TokenReader,
  { edition, bound }: Pick<IncomingCall, 'edition' | 'bound'>,
  token: string,
): Awaitable<TokenCheck> {
  try {
    const known = tokens.recall(token)
    if (known) return checkToken(edition, bound.operation, known)
    return tokens.verify(token).then((claims) => checkToken(edition, bound.operation, claims), refusedToken)
  } catch (error) {
    return refusedToken(error)
  }
}

function refusedToken(error: unknown): RefusedToken {
  if (error instanceof ServiceError) return { refusal: error }
  throw error
}

function checkToken({ catalog }: Edition, operation: Operation, { plan: name, ...claims }: VerifiedToken): TokenCheck {
  const plan = catalog.plans.plans.find((candidate) => candidate.plan === name)
  if (!plan) return { refusal: new ServiceError('token_invalid', `The plan ${name} is no longer offered.`) }
  if (!plan.authorizes.includes(operation.id)) return { refusal: new ServiceError('token_route') }
  return { access: { kind: 'token', plan: name, subject: claims.subject, expiresAt: claims.expiresAt }, plan }
}

/** Returns the answer to a call that a token opened. A stream in it ends when the token does. */
export function endWithToken(
  tokens: TokenReader,
  call: IncomingCall,
  { token, access }: Pick<AcceptedToken, 'access'> & { readonly token: string },
  answer: Answer,
): Answer {
  const { events, stream } = answer
  const refusal = async (): Promise<ServiceError | null> => {
    const current = await readToken(tokens, call, token)
    return 'refusal' in current ? current.refusal : null
  }
  const inItsTime: TokenValidity = {
    isValid: async () => (await refusal()) === null,
    remainingMs: () => tokens.remainingMs(access),
  }
  if (events) return { ...answer, events: untilTokenExpires(events, inItsTime) }
  if (!stream) return answer
  // An answer of known length ends by itself, as one that is sent at once does.
  const unlessRevoked: TokenValidity = {
    isValid: async () => ['token_expired', undefined].includes((await refusal())?.code),
    remainingMs: () => Number.POSITIVE_INFINITY,
  }
  const ends = stream.headers['content-length'] !== undefined
  return { ...answer, stream: cutWhenTokenExpires(stream, ends ? unlessRevoked : inItsTime) }
}

const CHECK_MS = 1_000

interface TokenValidity {
  /** Checked before each event is sent, and once a second. */
  readonly isValid: () => Promise<boolean>
  /** Milliseconds until the token expires. */
  readonly remainingMs: () => number
}

/** Ends the stream when the token expires or is no longer valid, and tells the source to stop. */
export function untilTokenExpires(
  source: AsyncIterable<ServerEvent>,
  validity: TokenValidity,
  checkMs = CHECK_MS,
): AsyncIterable<ServerEvent> {
  return {
    [Symbol.asyncIterator]() {
      const events = source[Symbol.asyncIterator]()
      let expire: () => void = () => {}
      const expired = new Promise<null>((resolve) => {
        expire = () => resolve(null)
      })
      const stopWatching = watch(validity, checkMs, expire)
      const close = async (): Promise<IteratorResult<ServerEvent>> => {
        stopWatching()
        // Not awaited: a source that waits for its next event would delay the end.
        events.return?.()?.catch(() => {})
        return { done: true, value: undefined }
      }
      return {
        async next() {
          const next = await Promise.race([events.next(), expired])
          if (next === null || next.done || !(await validity.isValid().catch(() => false))) return close()
          return next
        },
        return: close,
      }
    },
  }
}

/**
 * The response of an upstream that is cut off when the token expires or is no longer valid. It may never end by itself: an
 * upstream may send events too.
 */
function cutWhenTokenExpires(response: UpstreamResponse, validity: TokenValidity): UpstreamResponse {
  return {
    ...response,
    async pipe(to: Writable) {
      const stopWatching = watch(validity, CHECK_MS, () => to.destroy())
      try {
        await response.pipe(to)
      } finally {
        stopWatching()
      }
    },
  }
}

/** Calls `expire` once the token is no longer valid. Returns a function that stops watching. */
function watch({ isValid, remainingMs }: TokenValidity, checkMs: number, expire: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  const wait = (): void => {
    const ms = Math.min(checkMs, Math.max(1, Math.ceil(remainingMs())))
    timer = setTimeout(() => void check(), ms).unref()
  }
  const check = async (): Promise<void> => {
    const isGood = await isValid().catch(() => false)
    if (isStopped) return
    if (isGood) wait()
    else expire()
  }
  wait()
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}
