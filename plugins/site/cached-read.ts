/** Caches an answer that stays valid for a while. */
import { type Call, ServiceError } from 'tollgate/plugin'

export type Read<Answer> = (call: Call) => Promise<Answer | null>

/**
 * Wraps `read` so that it runs at most once per `length` milliseconds of the data's clock. Returns null if the products
 * behind it cannot answer. Neither null nor an error is cached.
 */
export function cachedRead<Answer>(length: number, read: Read<Answer>): Read<Answer> {
  let last: {
    readonly span: number
    readonly catalog: Call['catalog']
    readonly answer: Promise<Answer | null>
  } | null = null
  return async (call) => {
    const span = Math.floor(call.asOf.getTime() / length)
    if (last?.span !== span || last.catalog !== call.catalog) last = { span, catalog: call.catalog, answer: read(call) }
    const current = last
    try {
      const answer = await current.answer
      if (answer === null && last === current) last = null
      return answer
    } catch (error) {
      if (last === current) last = null
      if (error instanceof ServiceError) return null
      throw error
    }
  }
}
