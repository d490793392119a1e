/** The founding list: an e-mail address, kept once, deleted by the link in every letter. */
import { type Call, definePlugin, Reply } from 'tollgate/plugin'
import type { FoundingForm, LeaveAddress } from '../../schemas/types.d.ts'
import { migrations, openMembers } from './members.ts'

/** The address of the page holds the id: no cache keeps it, no index lists it. */
const PRIVATE = { 'x-robots-tag': 'noindex, nofollow', 'cache-control': 'private, no-store' }

export default definePlugin({
  name: 'founding',
  migrations,
  setup({ db, now }) {
    const members = openMembers(db)
    return {
      handlers: {
        /** Says the same of a new address and of a known one: nobody learns who is on the list. */
        async joinFounding({ input }: Call<{ body: FoundingForm }>) {
          const { email, source } = input.body
          await members.join(email, source, now())
          return { ok: true as const, message: 'The address is on the list.' }
        },
        /** Only asks: programs that follow the links of a letter must not unsubscribe its reader. */
        getFoundingLeave: ({ input }: Call<{ params: LeaveAddress }>) =>
          new Reply({ id: input.params.id, left: false }, { headers: PRIVATE }),
        async leaveFounding({ input }: Call<{ params: LeaveAddress }>) {
          await members.leave(input.params.id)
          return new Reply({ id: input.params.id, left: true }, { headers: PRIVATE })
        },
      },
    }
  },
})
