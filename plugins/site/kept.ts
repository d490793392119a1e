/** An answer that stays true for a while, made once for everybody who asks in that time. */
import { type Call, ServiceError } from 'tollgate/plugin'

export type Read<Answer> = (call: Call) => Promise<Answer | null>

/**
 * Reads at most once per `length` of the data's clock, in milliseconds. Null where the products behind it cannot answer;
 * that, and a failure, is forgotten at once.
 */
export function kept<Answer>(length: number, read: Read<Answer>): Read<Answer> {
  let last: {
    readonly span: number
    readonly catalog: Call['catalog']
    readonly answer: Promise<Answer | null>
  } | null = null
  return async (call) => {
    const span = Math.floor(call.asOf.getTime() / length)
    if (last?.span !== span || last.catalog !== call.catalog) last = { span, catalog: call.catalog, answer: read(call) }
    const asked = last
    try {
      const answer = await asked.answer
      if (answer === null && last === asked) last = null
      return answer
    } catch (error) {
      if (last === asked) last = null
      if (error instanceof ServiceError) return null
      throw error
    }
  }
}
