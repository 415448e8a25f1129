# Appends @item to the queue @queue and returns its number, from 1 on. queue-pop.4gl takes it.
# The name of a queue has no "/". All keys of the queue jobs are in the bucket jobs:
#   jobs             number of the item that was pushed last
#   jobs/popped      number of the item that was popped last
#   jobs/item-N      item number N
let number = 1
let pushed = get @queue
if pushed != null then
  let number = to_int(pushed) + 1
end

set @queue number
set (concat(@queue, "/item-", to_str(number))) @item
return number
