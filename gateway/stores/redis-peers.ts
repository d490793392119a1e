/** Keeps in Redis what the processes of a gateway tell each other. Each exchange is one script, so it is atomic. */
import type { AddedCalls, CallTotal, Pause, Peers } from './peers.ts'
import type { Redis } from './redis.ts'

/** KEYS: one per caller. ARGV: calls and milliseconds of each. Returns the total and the milliseconds left of each. */
const ADD_CALLS = `
local totals = {}
for i, key in ipairs(KEYS) do
  totals[2 * i - 1] = redis.call('INCRBY', key, ARGV[2 * i - 1])
  local left = redis.call('PTTL', key)
  if left < 0 then
    left = tonumber(ARGV[2 * i])
    redis.call('PEXPIRE', key, left)
  end
  totals[2 * i] = left
end
return totals`

/**
 * KEYS: the hash of pauses. ARGV: how long to keep it, then operation, milliseconds (empty to end the pause) and known
 * version of each change. Returns the time, then operation and version of each pause. A version says when the change was
 * made and, unless it ended the pause, until when the pause lasts.
 */
const EXCHANGE_PAUSES = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 2, #ARGV, 3 do
  local operation, left, known = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local version = string.format('%.0f:', now)
  if left ~= '' then
    redis.call('HSET', KEYS[1], operation, version .. string.format('%.0f', now + left))
  elseif redis.call('HGET', KEYS[1], operation) == known then
    redis.call('HSET', KEYS[1], operation, version)
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
local pauses = redis.call('HGETALL', KEYS[1])
table.insert(pauses, 1, string.format('%.0f', now))
return pauses`

/** Longer than a pause lasts, so that every process has read its end. */
const KEEP_PAUSES_MS = 600_000
/** A script of this many callers keeps Redis busy for a millisecond or two. */
const CALLERS_AT_ONCE = 500

/** Gateways with other names share nothing, on one Redis too. */
export function createRedisPeers(redis: Redis, gateway: string): Peers {
  const prefix = `tollgate:${gateway}`

  async function addCalls(added: readonly AddedCalls[]): Promise<CallTotal[]> {
    const keys = added.map(({ caller }) => `${prefix}:calls:${caller}`)
    const values = added.flatMap(({ calls, msLeft }) => [String(calls), String(Math.max(1, Math.ceil(msLeft)))])
    const reply = await redis.run((client) => client.eval(ADD_CALLS, { keys, arguments: values }))
    const numbers = Array.isArray(reply) ? reply.map(Number) : []
    if (numbers.length !== 2 * added.length || !numbers.every(Number.isSafeInteger))
      throw new Error('Redis did not answer with the totals of the calls.')
    return added.map((_, at) => ({ calls: numbers[2 * at] as number, msLeft: numbers[2 * at + 1] as number }))
  }

  return {
    async addCalls(added) {
      const totals: CallTotal[] = []
      for (let at = 0; at < added.length; at += CALLERS_AT_ONCE)
        totals.push(...(await addCalls(added.slice(at, at + CALLERS_AT_ONCE))))
      return totals
    },
    async exchangePauses(changes) {
      const values = changes.flatMap(({ operation, msLeft, version }) => [
        operation,
        msLeft === null ? '' : String(Math.ceil(msLeft)),
        version ?? '',
      ])
      const command = { keys: [`${prefix}:pauses`], arguments: [String(KEEP_PAUSES_MS), ...values] }
      const reply = await redis.run((client) => client.eval(EXCHANGE_PAUSES, command))
      const [now, ...pauses] = Array.isArray(reply) ? reply.map(String) : []
      if (now === undefined) throw new Error('Redis did not answer with the pauses.')
      return pausesIn(pauses, Number(now))
    },
  }
}

function pausesIn(fields: readonly string[], now: number): Pause[] {
  const pauses: Pause[] = []
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [operation = '', version = ''] = fields.slice(at, at + 2)
    const [, until = ''] = version.split(':')
    pauses.push({ operation, version, msLeft: until === '' ? null : Number(until) - now })
  }
  return pauses
}
