# Takes the oldest item from the queue @queue and returns it; null when the queue is empty.
# queue-push.4gl describes the keys.
let number = 1
let popped = get (concat(@queue, "/popped"))
if popped != null then
  let number = to_int(popped) + 1
end

let pushed = get @queue
if pushed = null || number > to_int(pushed) then
  return null
end

let key = concat(@queue, "/item-", to_str(number))
let item = get (key)
delete (key)
set (concat(@queue, "/popped")) number
return item
