/** As much of autocannon as the bench uses. */
declare module 'autocannon' {
  interface Result {
    readonly requests: { readonly total: number }
    readonly duration: number
  }
  export default function autocannon(options: { url: string; connections: number; duration: number }): Promise<Result>
}
