/** The trial and the limit of an operation in words, as documents, tools and refusals say them. */
import type { Operation } from '../plugin/catalog.ts'

export const PER = { minute: 'a minute', hour: 'an hour', day: 'a day' } as const

const CALLERS = {
  wallet: 'a wallet that signs in (SIGN-IN-WITH-X)',
  ip: 'a network address',
} as const

/** E.g. "The first 5 calls a day of a network address need no payment." Empty if the operation has neither. */
export function callLimitSentences({ trial, limit }: Pick<Operation, 'trial' | 'limit'>): string {
  const sentences = [
    ...(trial === null
      ? []
      : [
          `The first ${trial.calls} calls ${PER[trial.per]} of ${CALLERS[trial.by]} need no payment; Trial-Calls-Left says how many are left.`,
        ]),
    ...(limit === null ? [] : [`One wallet may make ${limit.calls} calls ${PER[limit.per]}; more get 429, uncharged.`]),
  ]
  return sentences.join(' ')
}
