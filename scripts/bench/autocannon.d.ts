/** As much of autocannon as the bench uses. */
declare module 'autocannon' {
  interface Result {
    readonly requests: { readonly total: number }
    readonly duration: number
  }
  interface Options {
    readonly url: string
    readonly connections: number
    readonly duration: number
    readonly method?: 'GET' | 'POST'
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
  }
  export default function autocannon(options: Options): Promise<Result>
}
