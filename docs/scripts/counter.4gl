# Adds 1 to the counter @key and returns its new value. A counter that does not exist begins at 0.
let count = 0
let stored = get @key
if stored != null then
  let count = to_int(stored)
end

let count = count + 1
set @key count
return count
