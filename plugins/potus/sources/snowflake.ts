/** Ids of Mastodon-like platforms carry their time. They do not fit a JavaScript number: they stay text. */

/**
 * Time of a post in milliseconds since 1970: the id shifted right by 16 bits.
 *
 * @example snowflakeTime('116457972455781406') // 1777007636349, 2026-04-24T05:13:56.349Z
 */
export function snowflakeTime(id: string): number | null {
  return /^\d{15,20}$/.test(id) ? Number(BigInt(id) >> 16n) : null
}
